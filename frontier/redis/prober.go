package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"strings"

	"seine/bloom"
	"seine/shard"
)

// Probing costs a master about 0.3 us a fingerprint, so 0.03% of its time for a
// shard at the full rate.
const (
	// probes is how many fingerprints one fetcher of the fleet asks a shard for, and
	// probeTime for how long nobody asks that shard then: 1,000 a second at most.
	probes    = 1000
	probeTime = time.Second
	// probeBusy is probeTime while the crawl needs Redis for itself.
	probeBusy = 10 * probeTime
	// probeRound is how often a fetcher tries; a little over probeTime, or a
	// fetcher that is alone would find its own claim every other time.
	probeRound = 1100 * time.Millisecond
	// probeRead is how often it reads what others found.
	probeRead = 10 * time.Second
	// probeWait bounds what it waits for a shard that does not answer.
	probeWait = 2 * time.Second
)

// Prober measures in the background how often the filters of a crawl err, by
// asking them for random fingerprints. Any number of programs do so at once and
// share what they find in Redis: whoever claims a shard probes it, and nobody
// else does for a second. What is known is at hand without a call, so an outage
// of Redis holds up nobody who asks for metrics.
type Prober struct {
	f       *Frontier
	filters *bloom.Filters
	log     *slog.Logger

	mu     sync.Mutex
	shards []probed
}

// probed is what is known of a shard's filters.
type probed struct {
	records []bloom.Record // by filter; nil when they were never read
	read    time.Time
	quality bloom.Quality // what the records amount to; Over was logged
}

// NewProber makes a prober that says in log when a filter errs too often, and
// when it no longer does.
func (f *Frontier) NewProber(log *slog.Logger) *Prober {
	return &Prober{f: f, filters: bloom.New(f.client), log: log, shards: make([]probed, len(f.keys))}
}

// Start probes until stop is called, at a tenth of the rate while busy says that
// the crawl needs Redis for itself. Shards that do not answer are left out; the
// callers of the crawl proper tell of them. A record that cannot be read is logged.
func (p *Prober) Start(ctx context.Context, busy func() bool) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(probeRound)
		defer ticker.Stop()
		for reported := false; ctx.Err() == nil; {
			err := p.Round(ctx, busy())
			strange := errors.Is(err, errRecord)
			if strange && !reported {
				p.log.Warn("filters are not measured", "err", err)
			}
			reported = strange
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
	})
	return func() error {
		cancel()
		wg.Wait()
		return p.filters.Close()
	}
}

// Round probes every shard once that nobody else probes just now. Cost: a call
// a shard, and a handful for each that is probed.
func (p *Prober) Round(ctx context.Context, busy bool) error {
	var errs []error
	for k := range p.f.keys {
		short, cancel := context.WithTimeout(ctx, probeWait)
		errs = append(errs, p.round(short, k, busy))
		cancel()
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// round is Round for one shard.
func (p *Prober) round(ctx context.Context, k int, busy bool) error {
	mine, refused := p.claim(ctx, k, busy) // also where Redis is full, which must not keep us from reading
	if !mine && time.Since(p.at(k).read) < probeRead {
		return refused
	}
	return errors.Join(refused, p.look(ctx, k, mine))
}

// Read reads what programs of the crawl found out about the filters of every
// shard that answers in time, and measures nothing. Cost: a few calls a shard, all
// shards at once.
func (p *Prober) Read(ctx context.Context) error {
	short, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	errs := make([]error, len(p.f.keys))
	var wg sync.WaitGroup
	for k := range p.f.keys {
		wg.Go(func() { errs[k] = p.look(short, k, false) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// look reads what is known of the filters of shard k and, if this program is to,
// probes one of them.
func (p *Prober) look(ctx context.Context, k int, mine bool) error {
	stored, records, err := p.f.records(ctx, k)
	if err != nil {
		return err
	}
	set, err := p.f.FilterSet(ctx, k)
	if err != nil {
		return err
	}
	j := -1
	if mine {
		j = rand.IntN(len(records))
		if records[j], err = p.probe(ctx, set, j, stored, records[j]); err != nil {
			return err
		}
	}
	for i := range records {
		if i == j || records[i].Version != 0 {
			continue
		}
		if records[i].Info, err = p.filters.Info(ctx, k, set.Filter(i)...); err != nil { // nobody probed it yet
			return lost(err)
		}
	}
	p.keep(k, records)
	return nil
}

// claim reports whether this program is to probe the shard now.
func (p *Prober) claim(ctx context.Context, k int, busy bool) (bool, error) {
	rest := probeTime
	if busy {
		rest = probeBusy
	}
	key := p.f.keys[k].Probing()
	reply, err := p.f.client.Do(ctx, k, key, "SET", key, p.f.process, "NX", "PX", rest.Milliseconds())
	return reply == "OK", err
}

// probe asks filter j of a shard and adds what it finds to its record, unless
// somebody else did meanwhile: a repeated or late call counts once or not at all.
func (p *Prober) probe(ctx context.Context, set bloom.Set, j int, stored map[string]string, r bloom.Record) (bloom.Record, error) {
	k, keys := set.Shard, set.Keys
	info, found, err := p.filters.Measure(ctx, k, probes, set.Filter(j)...)
	if err != nil {
		return r, lost(err)
	}
	next := r.AddProbe(info, found)
	text, err := json.Marshal(next)
	if err != nil {
		return r, fmt.Errorf("frontier: record of %s: %w", keys.Filter(j), err)
	}
	field := strconv.Itoa(j)
	_, err = p.f.client.CompareAndSet(ctx, k, keys.Probes(), shard.Fields{field, stored[field]}, shard.Fields{field, string(text)})
	return next, err
}

// at is what is known of shard k.
func (p *Prober) at(k int) probed {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shards[k]
}

// keep puts down what is known of shard k by now, and logs what is new and bad.
func (p *Prober) keep(k int, records []bloom.Record) {
	q := bloom.QualityOf(p.f.plan.ErrorRate, records...)
	p.mu.Lock()
	was := p.shards[k].quality.Over
	p.shards[k] = probed{records, time.Now(), q}
	p.mu.Unlock()
	switch {
	case q.Over && !was:
		p.log.Warn("a filter holds more new URLs for known than the crawl allows; they are lost to it", "shard", k,
			"measured", q.Probe.String(), "allowed", p.f.plan.ErrorRate, "lost_urls", q.Lost.String())
	case was && !q.Over:
		p.log.Warn("no filter of the shard errs too often any more", "shard", k, "measured", q.Probe.String())
	}
}

// WriteMetrics writes the state of every shard's filters and what probing found,
// as last known, in Prometheus text format. It calls nobody.
func (p *Prober) WriteMetrics(out io.Writer) {
	for k := range p.shards {
		known := p.at(k)
		if known.records == nil {
			continue
		}
		var sum bloom.Info
		for _, r := range known.records {
			sum.Items += r.Items
			sum.Capacity += r.Capacity
			sum.Bytes += r.Bytes
			sum.Layers = max(sum.Layers, r.Layers)
		}
		q, over := known.quality, 0.0
		if q.Over {
			over = 1
		}
		for _, m := range []struct {
			name  string
			value float64
		}{
			{"items", float64(sum.Items)}, {"capacity_items", float64(sum.Capacity)}, {"bytes", float64(sum.Bytes)}, {"layers", float64(sum.Layers)},
			{"false_positive_rate", q.Rate}, {"false_positive_rate_low", q.Low}, {"false_positive_rate_high", q.High},
			{"probes", float64(q.All.N)}, {"lost_urls", q.Lost.URLs}, {"lost_urls_high", q.Lost.High}, {"over", over},
		} {
			metrics.WriteGaugeFloat64(out, fmt.Sprintf(`seine_bloom_%s{shard="%d"}`, m.name, k), m.value)
		}
	}
}

// errRecord: what is stored of a filter is not what this program writes.
var errRecord = errors.New("frontier: a filter's record is in another form")

// records reads what probing found out about the filters of shard k, as stored
// and as understood. A record that cannot be read is empty in list, and the error
// that tells of it is an errRecord; the others are good then. Cost: one call.
func (f *Frontier) records(ctx context.Context, k int) (stored map[string]string, list []bloom.Record, err error) {
	key := f.keys[k].Probes()
	list = make([]bloom.Record, f.plan.Filters)
	if stored, err = f.client.Hash(ctx, k, key); err != nil {
		if strings.Contains(err.Error(), "WRONGTYPE") {
			err = fmt.Errorf("%w: %s is no hash; frontier check --repair moves it away: %w", errRecord, key, err)
		}
		return nil, list, err
	}
	var errs []error
	for j := range list {
		text := stored[strconv.Itoa(j)]
		if text == "" {
			continue
		}
		if list[j], err = bloom.ParseRecord(text); err != nil {
			todo := "frontier check --repair moves it away, to measure anew"
			if errors.Is(err, bloom.ErrVersion) {
				todo = "run one version on a crawl"
			}
			errs = append(errs, &shard.Error{Shard: k, Op: "probe", Err: fmt.Errorf("%w: field %d of %s: %w; %s", errRecord, j, key, err, todo)})
		}
	}
	return stored, list, errors.Join(errs...)
}

// unreadable parts the errors of records: the text of one that only says that
// there is none, "" without, and all others.
func unreadable(err error) (text string, other error) {
	if errors.Is(err, errRecord) {
		return err.Error(), nil
	}
	return "", err
}
