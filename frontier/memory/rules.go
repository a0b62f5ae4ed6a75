package memory

import (
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

// siteRules are the rules of robots.txt by origin, of one site. Most sites have one
// origin: only further ones take a map.
type siteRules struct {
	origin string
	first  originRules
	more   map[string]originRules
	bytes  int
	until  int64 // milliseconds: when the last of them holds no longer
}

type originRules struct {
	rules string
	until int64 // milliseconds
}

// of is what is kept of an origin, zero where nothing is.
func (s *siteRules) of(origin string) originRules {
	if s.origin == origin {
		return s.first
	}
	return s.more[origin]
}

// set keeps the rules of an origin.
func (s *siteRules) set(origin string, r originRules) {
	if old := s.of(origin); old.until > 0 {
		s.bytes -= len(origin) + len(old.rules)
	}
	s.bytes += len(origin) + len(r.rules)
	s.until = max(s.until, r.until)
	if s.origin == "" || s.origin == origin {
		s.origin, s.first = origin, r
		return
	}
	if s.more == nil {
		s.more = make(map[string]originRules)
	}
	s.more[origin] = r
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
	now := f.cfg.Now().UnixMilli()
	for i := range origins {
		o := &origins[i]
		o.Rules, o.TTL = nil, 0
		if s := p.rules[o.Site]; s != nil {
			if r := s.of(o.Origin); r.until > now {
				o.Rules, o.TTL = []byte(r.rules), time.Duration(r.until-now)*time.Millisecond
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
	now := f.cfg.Now().UnixMilli()
	for i := range origins {
		p.sweepRules(now)
		if o := &origins[i]; len(o.Rules) <= maxOriginRules && o.TTL > 0 {
			p.setRules(o, now+o.TTL.Milliseconds())
		}
	}
	return nil
}

func (p *shardState) setRules(o *frontier.OriginRules, until int64) {
	s := p.rules[o.Site]
	if s == nil || s.bytes+len(o.Origin)+len(o.Rules) > maxSiteRules {
		s = &siteRules{}
		p.rules[o.Site] = s
	}
	s.set(o.Origin, originRules{string(o.Rules), until})
}

// sweepRules forgets sites whose rules are too old, of a few that stand at
// random, as map order is.
func (p *shardState) sweepRules(now int64) {
	n := 0
	for site, s := range p.rules {
		if n++; n > rulesSweep {
			return
		}
		if s.until <= now {
			delete(p.rules, site)
		}
	}
}
