package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"seine/cmd/internal/boot"
	"seine/extract/sink"
	"seine/extract/sink/frame"
	"seine/extract/sink/hook"
	"seine/extract/sink/jsonl"
	"seine/extract/sink/kafka"
	"seine/extract/sink/postgres"
	"seine/extract/sink/redis"
	"seine/extract/sink/warc"
)

// output is a sink as this program uses it.
type output interface {
	sink.Sink
	QueueStats() sink.QueueStats
}

// destination is what one --out names.
type destination struct {
	name   string // in errors, metrics and --out-drop
	drop   bool
	series *frame.Series // begins new files by size and time, which become these
	stdout bool
	wire   bool // wants exchanges as they were on the wire
	open   func(c common) (output, error)
}

// common is what all outputs are opened with.
type common struct {
	ctx    context.Context
	fields sink.Fields
	stdout io.Writer
	log    *slog.Logger
	drop   bool

	finished func(path string) // of files; nil without --on-rotate

	memoryHigh int // of the crawl
}

// scheme is what an output that is no file begins with. A file of such a name
// can be given as ./NAME.
var scheme = regexp.MustCompile(`^([a-z][a-z0-9+]*):`)

// hasPassword reports whether an address holds one. On the command line every
// user of the machine can read it. A file that has one may be named there.
func hasPassword(address string) bool {
	_, rest, ok := strings.Cut(address, "://")
	rest, query, _ := strings.Cut(rest, "?")
	if at := strings.LastIndexByte(rest, '@'); ok && at >= 0 && strings.Contains(rest[:at], ":") {
		return true
	}
	values, _ := url.ParseQuery(query) // what cannot be read is refused by the output
	for name := range values {
		if name = strings.ToLower(name); strings.Contains(name, "password") && !strings.HasSuffix(name, "_file") {
			return true
		}
	}
	return false
}

// destinations reads --out and --out-drop, and touches nothing.
func (g *grammar) destinations() ([]destination, error) {
	addresses := g.Out
	if len(addresses) == 0 {
		addresses = []string{"-"}
	}
	var all []destination
	var faults []error
	for i, address := range addresses {
		if slices.Contains(addresses[:i], address) {
			faults = append(faults, fmt.Errorf("out: %s is given twice", address))
			continue
		}
		d, err := g.destination(address)
		if err != nil {
			faults = append(faults, fmt.Errorf("out: %w", err))
			continue
		}
		n := 1
		for _, o := range all {
			if o.name == d.name {
				n++
			}
		}
		if n > 1 {
			d.name = fmt.Sprint(d.name, n)
		}
		all = append(all, d)
	}
	for _, name := range g.OutDrop {
		i := slices.IndexFunc(all, func(d destination) bool { return d.name == name })
		if i < 0 {
			faults = append(faults, fmt.Errorf("out-drop: there is no output %q; there are %s", name, names(all)))
			continue
		}
		all[i].drop = true
	}
	if (g.RotateSize != 0 || g.RotateTime != 0) && !slices.ContainsFunc(all, func(d destination) bool { return d.series != nil }) {
		faults = append(faults, errors.New("rotate-size and rotate-time need a file: name it with --out FILE"))
	}
	if err := g.checkHook(all); err != nil {
		faults = append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, boot.Usage("%w", err)
	}
	return all, nil
}

func names(all []destination) []string {
	var list []string
	for _, d := range all {
		list = append(list, d.name)
	}
	return list
}

// destination reads one --out.
func (g *grammar) destination(address string) (destination, error) {
	kind := "jsonl"
	if m := scheme.FindStringSubmatch(address); m != nil {
		kind = m[1]
	}
	d := destination{name: kind}
	if kind == "jsonl" || kind == "warc" {
		if err := checkEnding(address); err != nil {
			return d, err
		}
	}
	switch kind {
	case "jsonl":
		if d.stdout = address == "-"; !d.stdout {
			d.series = new(frame.SeriesOf(address))
		}
		d.open = func(c common) (output, error) {
			cfg := jsonl.Config{Path: address, Fields: c.fields, RotateSize: int64(g.RotateSize), RotateTime: g.RotateTime, Drop: c.drop, Finished: c.finished,
				Stop: c.ctx.Done(), OnWait: func() { c.log.Info("waiting for somebody to read the pipe", "out", address) }}
			if d.stdout {
				cfg.Path, cfg.Writer, cfg.RotateSize, cfg.RotateTime, cfg.Finished = "", c.stdout, 0, 0, nil
			}
			return jsonl.Open(cfg)
		}
	case "warc":
		cfg, err := warc.Parse(address[len("warc:"):])
		if err != nil {
			return d, err
		}
		d.series, d.wire = new(cfg.Series()), true
		d.open = func(c common) (output, error) {
			cfg.Fields, cfg.Drop, cfg.RotateSize, cfg.RotateTime = c.fields, c.drop, int64(g.RotateSize), g.RotateTime
			cfg.Finished = c.finished
			cfg.Software = boot.UserAgent(g.Contact)
			return warc.Open(cfg)
		}
	case "postgres", "postgresql":
		cfg, err := postgres.Parse(address)
		if err != nil {
			return d, err
		}
		d.name = "postgres"
		d.open = func(c common) (output, error) {
			cfg.Fields, cfg.Drop, cfg.Log = c.fields, c.drop, c.log
			return postgres.Open(c.ctx, cfg)
		}
	case "kafka":
		cfg, err := kafka.Parse(address, os.Getenv(boot.KafkaPasswordEnv))
		if err != nil {
			return d, err
		}
		d.open = func(c common) (output, error) {
			cfg.Fields, cfg.Drop, cfg.Log = c.fields, c.drop, c.log
			return kafka.Open(c.ctx, cfg)
		}
	case "redis", "rediss":
		return g.redisDestination(address)
	default:
		return d, fmt.Errorf("%s: there is no output %q; a file whose name has a colon is ./%s", address, kind+":", address)
	}
	return d, nil
}

// otherKinds are endings of files of kinds that are not written.
var otherKinds = []string{".csv", ".tsv", ".parquet", ".avro", ".orc", ".arrow", ".feather", ".xlsx", ".sqlite", ".db", ".xml", ".bz2", ".xz", ".lz4", ".lzma", ".br", ".snappy", ".sz", ".zip", ".7z", ".tar", ".tgz", ".z"}

// checkEnding refuses a file whose name promises what would not be in it.
func checkEnding(address string) error {
	end := filepath.Ext(address)
	small := strings.ToLower(end)
	switch {
	case slices.Contains(otherKinds, small):
		return fmt.Errorf("%s: files of the kind %s are not written; name a file of JSON lines, such as pages.jsonl, pages.jsonl.gz or pages.jsonl.zst", address, end)
	case small != end && (small == ".gz" || small == ".zst"):
		return fmt.Errorf("%s: write %s in small letters, else the file would not be compressed", address, small)
	}
	return nil
}

// redisDestination reads an address of Redis. What shares servers with the
// frontier keeps to its memory watermark.
func (g *grammar) redisDestination(address string) (destination, error) {
	d := destination{name: "redis"}
	if g.Embedded && !strings.Contains(address, "://") {
		return d, fmt.Errorf("%s is the crawl's own server, --embedded has none: redis://HOST names another", address)
	}
	server, err := g.RedisFlags.Config("fetcher-out", os.Environ())
	if err != nil {
		return d, err
	}
	cfg, err := redis.Parse(address, redis.Config{Server: server, Key: g.Crawl + ":items"})
	if err != nil {
		return d, err
	}
	d.open = func(c common) (output, error) {
		cfg.Fields, cfg.Drop = c.fields, c.drop
		if !g.Embedded && cfg.Server.Shares(server) {
			cfg.MemoryHigh = c.memoryHigh
		}
		return redis.Open(c.ctx, cfg)
	}
	return d, nil
}

// outputs are all that records go to.
type outputs struct {
	*sink.Fan
	names []string
	dirs  []string // where files of each are, "" = it has none
	sinks []output
	wire  bool            // one wants exchanges
	hook  *hook.Hook      // nil without --on-rotate
	abort context.Context // kills its commands
	grace time.Duration   // how long they may take at the end
	log   *slog.Logger

	warned time.Time // when drops were logged last
	drops  int64     // by then
}

// openOutputs opens them all, or none.
func (g *grammar) openOutputs(env *boot.Env, fields sink.Fields, memoryHigh int) (*outputs, error) {
	all, err := g.destinations()
	if err != nil {
		return nil, err
	}
	if g.KeepSecrets {
		fields |= sink.KeepSecrets
	}
	o := &outputs{names: names(all), abort: env.Abort, grace: g.Grace, log: env.Log}
	shared := common{ctx: env.Stop, fields: fields, stdout: env.Out, log: env.Log, memoryHigh: memoryHigh}
	if o.hook, err = g.openHook(env); err != nil {
		return nil, err
	}
	if o.hook != nil {
		shared.finished = o.hook.RunFor
	}
	fail := func(err error) (*outputs, error) {
		for _, s := range o.sinks {
			err = errors.Join(err, s.Close())
		}
		return nil, errors.Join(err, o.closeHook())
	}
	var fan []sink.Output
	for _, d := range all {
		shared.drop = d.drop
		s, err := d.open(shared)
		if err != nil && d.drop && env.Stop.Err() == nil {
			s, err = newLateOutput(d, shared, err), nil
		}
		if err != nil {
			return fail(err)
		}
		o.sinks, o.wire = append(o.sinks, s), o.wire || d.wire
		dir := ""
		if d.series != nil {
			dir = d.series.Dir
		}
		o.dirs = append(o.dirs, dir)
		fan = append(fan, sink.Output{Name: d.name, Sink: s, Drop: d.drop, Archives: d.wire})
		if o.hook != nil && d.series != nil {
			if err := o.hook.RunForLeft(*d.series); err != nil { // its opening repaired the files
				return fail(err)
			}
		}
	}
	o.Fan = sink.NewFan(fan...)
	return o, nil
}

// dropped names which outputs lost how many records, "" for none.
func (o *outputs) dropped() string {
	var all []string
	for i, s := range o.sinks {
		if n := s.QueueStats().Dropped; n > 0 {
			all = append(all, fmt.Sprintf("output %s dropped %s", o.names[i], boot.Number(n, "record")))
		}
	}
	return strings.Join(all, "; ")
}

// dropsAgain is how often drops are logged at most.
const dropsAgain = time.Minute

// warnDrops logs that outputs lose records: at once, and once a minute while they go on.
func (o *outputs) warnDrops() {
	var n int64
	for _, s := range o.sinks {
		n += s.QueueStats().Dropped
	}
	if n > o.drops && time.Since(o.warned) >= dropsAgain {
		o.log.Warn("records are lost, as --out-drop allows", "lost", o.dropped())
		o.warned, o.drops = time.Now(), n
	}
}

// lateOutput stands for an output that may lose records and could not be opened: it
// loses them until it can.
type lateOutput struct {
	opened atomic.Pointer[output]
	lost   atomic.Int64
	cancel context.CancelFunc
	ended  chan struct{}
}

const (
	firstReopen = time.Second
	lastReopen  = time.Minute
)

// newLateOutput tries to open d time after time; why is what kept it from that.
func newLateOutput(d destination, c common, why error) *lateOutput {
	l := &lateOutput{ended: make(chan struct{})}
	c.ctx, l.cancel = context.WithCancel(c.ctx)
	go func() {
		defer close(l.ended)
		for pause := firstReopen; ; pause = min(2*pause, lastReopen) {
			c.log.Warn("an output cannot be opened; its records are lost until it can, as --out-drop allows", "output", d.name, "retry_in", pause, "err", why)
			select {
			case <-c.ctx.Done():
				return
			case <-time.After(pause):
			}
			s, err := d.open(c)
			if err == nil {
				c.log.Info("the output is open; it gets the records from now on", "output", d.name, "lost", l.lost.Load())
				l.opened.Store(&s)
				return
			}
			why = err
		}
	}()
	return l
}

// Write implements sink.Sink.
func (l *lateOutput) Write(r *sink.Record, done func(error)) {
	if s := l.opened.Load(); s != nil {
		(*s).Write(r, done)
		return
	}
	l.lost.Add(1)
	done(nil)
}

// Err implements sink.Sink: nobody waits.
func (l *lateOutput) Err() error { return nil }

// QueueStats counts what was lost too.
func (l *lateOutput) QueueStats() (st sink.QueueStats) {
	if s := l.opened.Load(); s != nil {
		st = (*s).QueueStats()
	}
	st.Dropped += l.lost.Load()
	return st
}

// Close implements sink.Sink.
func (l *lateOutput) Close() error {
	l.cancel()
	<-l.ended
	if s := l.opened.Load(); s != nil {
		return (*s).Close()
	}
	return nil
}

// writeMetrics writes what each output did, in the text format.
func (o *outputs) writeMetrics(w io.Writer) {
	for i, s := range o.sinks {
		st, stalled := s.QueueStats(), 0
		if s.Err() != nil {
			stalled = 1
		}
		for _, m := range []struct {
			name string
			n    int64
		}{
			{"seine_sink_records_total", st.Kept}, {"seine_sink_batches_total", st.Batches}, {"seine_sink_retries_total", st.Retries},
			{"seine_sink_dropped_total", st.Dropped}, {"seine_sink_unfit_total", st.Unfit}, {"seine_sink_pending_bytes", st.Pending}, {"seine_sink_stalled", int64(stalled)},
		} {
			fmt.Fprintf(w, "%s{output=%q} %d\n", m.name, o.names[i], m.n)
		}
	}
	o.writeHook(w)
}
