package frontiertest

import (
	"time"

	"pgregory.net/rapid"

	"seine/frontier"
)

func (p *pair) alter(rt *rapid.T) {
	site := p.site(rt)
	var change frontier.SiteChange
	flag := rapid.IntRange(0, 2).Draw(rt, "flag") == 2
	switch rapid.IntRange(0, 4).Draw(rt, "change") {
	case 0:
		change.Paused = &flag
	case 1:
		change.Blocked = &flag
	case 2:
		limit := rapid.SampledFrom([]int64{0, 1, 20}).Draw(rt, "cap")
		change.Cap = &limit
	case 3:
		change.EndWalls = true
	default:
		text := rapid.SampledFrom([]string{"", `{"per_site":2}`}).Draw(rt, "override")
		change.Override = &text
	}
	errA := p.a.f.Alter(p.a.ctx, p.a.shard(site), site, change)
	errB := p.b.f.Alter(p.b.ctx, p.b.shard(site), site, change)
	agree(rt, "alter "+site, true, true, errA, errB)
}

func (p *pair) changeSettings(rt *rapid.T) {
	order := rapid.SampledFrom([]string{"breadth", "depth"}).Draw(rt, "order")
	limit := rapid.SampledFrom([]int64{0, 0, 10}).Draw(rt, "max per site")
	for _, k := range []*kit{p.a, p.b} {
		k.changeSettings(func(s *frontier.Settings) { s.Order, s.MaxPerSite = order, limit })
	}
}

func (p *pair) pause(rt *rapid.T) {
	shard := rapid.IntRange(-1, p.a.f.Shards()-1).Draw(rt, "shard")
	paused := rapid.IntRange(0, 5).Draw(rt, "paused") == 5
	errA, errB := p.a.f.Pause(p.a.ctx, shard, paused), p.b.f.Pause(p.b.ctx, shard, paused)
	agree(rt, "pause", true, true, errA, errB)
}

func (p *pair) reserve(rt *rapid.T) {
	req := frontier.ReserveRequest{Site: p.site(rt), Delay: time.Second, Slack: 500 * time.Millisecond}
	req.Ahead = time.Duration(rapid.SampledFrom([]int{0, 3, 30}).Draw(rt, "ahead")) * time.Second
	shard := p.a.shard(req.Site)
	a, errA := p.a.f.Reserve(p.a.ctx, shard, req)
	b, errB := p.b.f.Reserve(p.b.ctx, shard, req)
	if d := a.Wait - b.Wait; -time.Millisecond <= d && d <= time.Millisecond {
		b.Wait = a.Wait
	}
	agree(rt, "reserve "+req.Site, a, b, errA, errB)
}
