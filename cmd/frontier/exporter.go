package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"seine/cmd/internal/boot"
	"seine/cmd/internal/metric"
	"seine/frontier"
	"seine/frontier/ask"
	"seine/frontier/redis"
)

type exporterCmd struct {
	Listen string `default:"127.0.0.1:9109" placeholder:"[HOST:]PORT" help:"Serve /metrics and /healthz at this address; a port alone means loopback (${default})."`
	Due    string `placeholder:"DATE" help:"Date by which the crawl must be done, such as 2027-01-31 or 2027-01-31T18:00:00Z. An alert compares it with the estimate."`
}

// due is when the crawl is to be done, zero without --due.
func (c *exporterCmd) due() (time.Time, error) {
	if c.Due == "" {
		return time.Time{}, nil
	}
	for _, form := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(form, c.Due); err == nil {
			return at, nil
		}
	}
	return time.Time{}, boot.Usage("--due: %q is no date such as 2027-01-31 or 2027-01-31T18:00:00Z", c.Due)
}

// Run shows a crawl to Prometheus, whether or not a fetcher lives, until a signal.
func (c *exporterCmd) Run(env *boot.Env, g *cli) error {
	due, err := c.due()
	if err != nil {
		return err
	}
	return g.openRedis(env, func(ctx context.Context, f *redis.Frontier) error {
		e := &exporter{f: f, prober: f.NewProber(env.Log), due: due, calls: env.Metrics}
		addr, stop, err := boot.Monitor{Addr: c.Listen, Flag: "listen", Ready: e.ready, Write: func(w io.Writer) {
			metric.Page(w, g.Crawl, func(w io.Writer) { e.write(ctx, w) })
		}}.Start()
		if err != nil {
			return err
		}
		defer stop()
		env.Log.Info("serving /metrics and /healthz", "addr", addr)
		<-env.Stop.Done()
		return nil
	})
}

const (
	// readWait bounds a reading: Prometheus gives up after ten seconds.
	readWait = 8 * time.Second
	// readFor is how long a reading serves all who ask.
	readFor = time.Second
	// estimateFor is how long an estimate serves: it looks at some thousands of sites.
	estimateFor = 30 * time.Second
)

// exporter reads a crawl for those who ask for its metrics.
type exporter struct {
	f      *redis.Frontier
	prober *redis.Prober
	calls  *metrics.Set // of the calls to Redis
	due    time.Time    // when the crawl is to be done, zero = without --due

	mu        sync.Mutex
	last      reading
	eta       ask.ETA
	estimated time.Time // when eta was
}

// reading is what was read at one moment.
type reading struct {
	at      time.Time
	took    time.Duration
	report  *frontier.Report             // nil: it could not be read
	servers map[string]map[string]string // INFO of the masters that answered
	eta     ask.ETA
	err     error
}

// read is a reading that is not older than readFor.
func (e *exporter) read(ctx context.Context) reading {
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Since(e.last.at) < readFor {
		return e.last
	}
	ctx, cancel := context.WithTimeout(ctx, readWait)
	defer cancel()
	began := time.Now()
	var r reading
	var wg sync.WaitGroup
	var reportErr, serversErr error
	wg.Go(func() { r.report, reportErr = e.f.Report(ctx) })
	wg.Go(func() { r.servers, serversErr = e.f.Client().Servers(ctx) })
	wg.Go(func() { e.prober.Read(ctx) }) // who does not answer is missing in the report too
	wg.Wait()
	if r.report != nil && time.Since(e.estimated) >= estimateFor {
		var err error
		if e.eta, err = ask.Estimate(ctx, e.f, r.report); err != nil {
			reportErr = errors.Join(reportErr, err)
		}
		e.estimated = time.Now()
	}
	r.eta, r.at, r.took, r.err = e.eta, time.Now(), time.Since(began), errors.Join(reportErr, serversErr)
	e.last = r
	return r
}

func (e *exporter) ready(ctx context.Context) error { return e.read(ctx).err }

// write writes a reading in the text format. Where the crawl cannot be read, that
// is what it has, of every shard.
func (e *exporter) write(ctx context.Context, w io.Writer) {
	r := e.read(ctx)
	boot.WriteBuild(w, "exporter")
	e.calls.WritePrometheus(w)
	metrics.WriteProcessMetrics(w)
	metrics.WriteGaugeFloat64(w, "seine_exporter_read_seconds", r.took.Seconds())
	up := uint64(1)
	if r.err != nil {
		up = 0
	}
	metrics.WriteGaugeUint64(w, "seine_exporter_up", up)
	if !e.due.IsZero() {
		metrics.WriteGaugeFloat64(w, "seine_frontier_due_timestamp_seconds", float64(e.due.Unix()))
	}
	masters := make([]string, e.f.Shards())
	if r.report == nil {
		for k := range masters {
			metrics.WriteGaugeUint64(w, fmt.Sprintf(`seine_frontier_silent{shard="%d"}`, k), 1)
		}
	} else {
		frontier.WriteMetrics(w, r.report.Shards)
		writeCrawl(w, r.report)
		if r.eta.Known {
			metrics.WriteGaugeFloat64(w, "seine_frontier_eta_seconds", time.Duration(r.eta.Left).Seconds())
		}
		metrics.WriteGaugeFloat64(w, "seine_frontier_slowest_site_seconds", time.Duration(r.eta.Slowest).Seconds())
		e.prober.WriteMetrics(w)
		for k := range masters {
			masters[k] = r.report.Shards[k].Master
		}
	}
	for k, master := range masters {
		writeServer(w, k, master, r.servers[master])
	}
}

// writeCrawl writes what is known of the crawl as a whole.
func writeCrawl(w io.Writer, r *frontier.Report) {
	gauge := func(name string, v int64) { metrics.WriteGaugeUint64(w, name, uint64(max(v, 0))) }
	for cause, n := range r.Dead {
		gauge(fmt.Sprintf("seine_frontier_dead_letters{cause=%q}", cause), n)
	}
	gauge("seine_frontier_paused_sites", r.Paused)
	gauge("seine_frontier_blocked_sites", r.Blocked)
	gauge("seine_frontier_missing_filters", int64(len(r.Lost)))
	if r.Feed >= 0 {
		gauge("seine_frontier_feed_elements", r.Feed)
	}
	if r.Members == nil {
		return // the list could not be read: that is not an empty one
	}
	kinds := map[string]int64{frontier.KindFetcher: 0, frontier.KindSeeder: 0}
	for i := range r.Members {
		kinds[r.Members[i].Kind]++
	}
	fleet := frontier.FleetOf(r.Members)
	for kind, n := range kinds {
		gauge(fmt.Sprintf("seine_frontier_programs{kind=%q}", kind), n)
	}
	for version, n := range fleet.Versions {
		gauge(fmt.Sprintf("seine_frontier_program_versions{version=%q}", version), int64(n))
	}
	for bound, n := range fleet.Limits {
		gauge(fmt.Sprintf("seine_frontier_fetchers_limited_by{bound=%q}", bound), int64(n))
	}
	atLimit := 0
	for _, bound := range []string{"workers", "cpu", "memory", "files", "ports"} {
		atLimit += fleet.Limits[bound]
	}
	gauge("seine_frontier_fetchers_at_limit", int64(atLimit))
	metrics.WriteGaugeFloat64(w, "seine_frontier_pages_per_second", fleet.Rate)
}

// serverGauges are what the exporter has of the server of each shard, by the field of INFO.
var serverGauges = []struct{ name, field string }{
	{"seine_redis_uptime_seconds", "uptime_in_seconds"},
	{"seine_redis_clients", "connected_clients"},
	{"seine_redis_clients_limit", "maxclients"},
	{"seine_redis_memory_rss_bytes", "used_memory_rss"},
	{"seine_redis_replicas", "connected_slaves"},
	{"seine_redis_commands_total", "total_commands_processed"},
	{"seine_redis_evicted_keys_total", "evicted_keys"},
}

// writeServer writes the state of a shard's master; info is nil when it did not
// answer, and without what the server does not say or forbids to ask.
func writeServer(w io.Writer, k int, master string, info map[string]string) {
	write := func(name string, v float64) {
		metrics.WriteGaugeFloat64(w, fmt.Sprintf(`%s{shard="%d"}`, name, k), v)
	}
	if info == nil {
		write("seine_redis_up", 0)
		return
	}
	write("seine_redis_up", 1)
	fmt.Fprintf(w, "seine_redis_shard_info{shard=\"%d\",master=%q} 1\n", k, master)
	for _, g := range serverGauges {
		if v, err := strconv.ParseFloat(info[g.field], 64); err == nil {
			write(g.name, v)
		}
	}
	system, err1 := strconv.ParseFloat(info["used_cpu_sys"], 64)
	user, err2 := strconv.ParseFloat(info["used_cpu_user"], 64)
	if err1 == nil && err2 == nil {
		write("seine_redis_cpu_seconds_total", system+user)
	}
	if lag, ok := replicaLag(info); ok {
		write("seine_redis_replica_lag_bytes", lag)
	}
	if info["aof_enabled"] != "" {
		failed := info["aof_enabled"] == "1" && info["aof_last_write_status"] != "ok" || info["rdb_last_bgsave_status"] != "ok"
		ok := 1.0
		if failed {
			ok = 0
		}
		write("seine_redis_disk_ok", ok)
	}
}

// replicaLag is how far the replica that has most is behind its master.
func replicaLag(info map[string]string) (bytes float64, ok bool) {
	head, err := strconv.ParseFloat(info["master_repl_offset"], 64)
	if err != nil {
		return 0, false
	}
	for i := 0; ; i++ {
		replica, there := info["slave"+strconv.Itoa(i)]
		if !there {
			return bytes, ok
		}
		for field := range strings.SplitSeq(replica, ",") {
			text, found := strings.CutPrefix(field, "offset=")
			if at, err := strconv.ParseFloat(text, 64); found && err == nil {
				if lag := max(head-at, 0); !ok || lag < bytes {
					bytes, ok = lag, true
				}
			}
		}
	}
}
