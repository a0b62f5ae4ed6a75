package memory

import (
	"bytes"
	"context"
	"time"

	"seine/frontier"
)

const (
	// maxOriginRules is how many bytes the rules of one origin may take.
	maxOriginRules = 64 << 10
	// maxSiteRules is what those of all origins of a site may take: some have a host
	// name for each of a million users. Where they take more, all are forgotten.
	maxSiteRules = 512 << 10
	// rulesSweep is how many sites are looked at for each origin that is stored: what
	// is too old leaves at least as fast as new rules come.
	rulesSweep = 4
)

// siteRules are the rules of robots.txt by origin, of one site.
type siteRules struct {
	origins map[string]originRules
	bytes   int
	until   time.Time // when the last of them holds no longer
}

type originRules struct {
	rules []byte
	until time.Time
}

// Rules fills in what SetRules stored of each origin, Rules and TTL; TTL is 0
// where nothing is stored or it holds no longer.
func (f *Frontier) Rules(ctx context.Context, k int, origins []frontier.OriginRules) error {
	p, err := f.shard(ctx, k, "rules")
	if err != nil {
		return err
	}
	p.lock()
	defer p.mu.Unlock()
	now := f.cfg.Now()
	for i := range origins {
		o := &origins[i]
		o.Rules, o.TTL = nil, 0
		if s := p.rules[o.Site]; s != nil {
			if r, ok := s.origins[o.Origin]; ok && r.until.After(now) {
				o.Rules, o.TTL = bytes.Clone(r.rules), r.until.Sub(now)
			}
		}
	}
	return nil
}

// SetRules stores the rules of each origin for its TTL. They are not kept on
// disk, and not at all when they take more than 64 KB; whoever needs them asks
// the origin again.
func (f *Frontier) SetRules(ctx context.Context, k int, origins []frontier.OriginRules) error {
	p, err := f.shard(ctx, k, "rules")
	if err != nil {
		return err
	}
	p.lock()
	defer p.mu.Unlock()
	now := f.cfg.Now()
	for i := range origins {
		p.sweepRules(now)
		if o := &origins[i]; len(o.Rules) <= maxOriginRules && o.TTL > 0 {
			p.setRules(o, now.Add(o.TTL))
		}
	}
	return nil
}

func (p *shardState) setRules(o *frontier.OriginRules, until time.Time) {
	s := p.rules[o.Site]
	bytesOf := len(o.Origin) + len(o.Rules)
	if s == nil || s.bytes+bytesOf > maxSiteRules {
		s = &siteRules{origins: make(map[string]originRules)}
		p.rules[o.Site] = s
	}
	if old, ok := s.origins[o.Origin]; ok {
		s.bytes -= len(o.Origin) + len(old.rules)
	}
	s.origins[o.Origin] = originRules{bytes.Clone(o.Rules), until}
	s.bytes += bytesOf
	if until.After(s.until) {
		s.until = until
	}
}

// sweepRules forgets sites whose rules are too old, of a few that stand at
// random, as map order is.
func (p *shardState) sweepRules(now time.Time) {
	n := 0
	for site, s := range p.rules {
		if n++; n > rulesSweep {
			return
		}
		if !s.until.After(now) {
			delete(p.rules, site)
		}
	}
}
