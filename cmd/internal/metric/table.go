package metric

// Row is one metric of Seine's programs.
type Row struct {
	Name   string
	Type   string   // counter, gauge or histogram
	Labels []string // beside crawl, which all have
	Help   string
}

// Table is every metric, by name within its package.
var Table = []Row{
	{"seine_build_info", gauge, []string{"version", "goversion", "program"}, "1, of the version that runs."},

	{"seine_crawl_pages_total", counter, []string{"class"}, "Requests for pages by class of their status, none without an answer; those that are tried again count too."},
	{"seine_crawl_answers_total", counter, []string{"code"}, "Answers for pages and robots.txt by status code; codes that nobody registered are other."},
	{"seine_crawl_media_total", counter, []string{"kind"}, "Answers of class 2xx by the kind of their content."},
	{"seine_crawl_pages_unchanged_total", counter, nil, "Pages that a recrawl or refetch found unchanged."},
	{"seine_crawl_pages_duplicate_total", counter, nil, "Pages whose content another URL brought before."},
	{"seine_crawl_pages_unasked_total", counter, nil, "Pages whose content was not compared, for its shard was silent."},
	{"seine_crawl_signing_sites_total", counter, nil, "Sites that began to ask for signed requests, with --sign asked."},
	{"seine_crawl_pages_withheld_total", counter, nil, "Pages that were answered and that their site refuses for a purpose of the crawl."},
	{"seine_crawl_outcomes_total", counter, []string{"kind"}, "Settled URLs by what became of them."},
	{"seine_crawl_outcomes_gone_total", counter, nil, "Outcomes that came too late: the visit was taken back, or they had counted before."},
	{"seine_crawl_walls_total", counter, []string{"vendor"}, "Answers for pages and robots.txt that were walls of protection services, by vendor."},
	{"seine_crawl_failures_total", counter, []string{"cause", "kind"}, "URLs that failed, by cause and by what follows: retry or dead."},
	{"seine_crawl_body_bytes_total", counter, nil, "Bytes of bodies, decoded."},
	{"seine_crawl_wire_bytes_total", counter, nil, "Bytes of answers on the wire."},
	{"seine_crawl_fetch_seconds", histogram, nil, "Time of one answered request, until the end of its body."},
	{"seine_crawl_links_total", counter, nil, "Distinct links seen in pages."},
	{"seine_crawl_links_known_total", counter, nil, "Links that the process itself knew to be known."},
	{"seine_crawl_links_refused_total", counter, []string{"reason"}, "Links that are not followed."},
	{"seine_crawl_verdicts_total", counter, []string{"shard", "verdict"}, "Candidates by verdict of admission."},
	{"seine_crawl_admissions_not_acked_total", counter, nil, "Admissions that no replica acknowledged in time."},
	{"seine_crawl_feed_refused_total", counter, nil, "Elements of the feed that were refused."},
	{"seine_crawl_overflow_candidates_total", counter, nil, "Candidates that the overflow keeps."},
	{"seine_crawl_visits_active", gauge, nil, "Visits of this process now."},
	{"seine_crawl_visits_delayed", gauge, nil, "Visits that wait for their site's delay."},
	{"seine_crawl_workers", gauge, nil, "Workers of this process."},
	{"seine_crawl_workers_busy", gauge, nil, "Workers that make a request now."},
	{"seine_crawl_open_bytes", gauge, nil, "Memory of pages that are not settled yet."},
	{"seine_crawl_live_programs", gauge, nil, "Programs at work on the crawl, as this process last heard."},
	{"seine_crawl_limited_by", gauge, []string{"bound"}, "1 for what bounds the rate of this process now."},
	{"seine_crawl_fields_total", counter, []string{"at", "field", "result"}, "What rules of fields found, failed at or missed."},
	{"seine_crawl_handler_calls_total", counter, []string{"result"}, "Calls of the handler: ok, error or panic."},
	{"seine_crawl_handler_items_total", counter, nil, "Items that went to the outputs with their records."},
	{"seine_crawl_handler_seconds", histogram, nil, "Time of one call of the handler."},
	{"seine_crawl_handlers_active", gauge, nil, "Handlers that run now."},
	{"seine_crawl_handler_oldest_seconds", gauge, nil, "How long the one that began first has been running."},

	{"seine_frontier_ready_sites", gauge, byShard, "Sites with work that are not leased."},
	{"seine_frontier_paused_ready_sites", gauge, byShard, "Paused sites with work."},
	{"seine_frontier_leased_sites", gauge, byShard, "Sites that are leased."},
	{"seine_frontier_walled_sites", gauge, byShard, "Sites that the fleet backs off from now, since walls answer there."},
	{"seine_frontier_queued_urls", gauge, byShard, "URLs in queues."},
	{"seine_frontier_recrawl_urls", gauge, byShard, "URLs that wait for a recrawl."},
	{"seine_frontier_waiting_urls", gauge, byShard, "URLs that wait for a retry."},
	{"seine_frontier_open_urls", gauge, byShard, "URLs that are leased."},
	{"seine_frontier_known_urls", gauge, byShard, "URLs admitted so far."},
	{"seine_frontier_done_urls", gauge, byShard, "URLs done so far."},
	{"seine_frontier_dead_urls", gauge, byShard, "URLs given up so far."},
	{"seine_frontier_lost_urls", gauge, byShard, "URLs that came back from lost fetchers so far."},
	{"seine_frontier_retried_urls", gauge, byShard, "Fetches that ended in a retry so far."},
	{"seine_frontier_blocked_urls", gauge, byShard, "URLs that went with their site's block so far."},
	{"seine_frontier_turned_away_urls", gauge, byShard, "Links turned away for want of memory so far."},
	{"seine_frontier_queue_cap_urls", gauge, byShard, "Links to queues of so many URLs are turned away now; 0 = none are."},
	{"seine_frontier_memory_bytes", gauge, byShard, "Memory in use on the shard's master."},
	{"seine_frontier_memory_limit_bytes", gauge, byShard, "maxmemory of the shard's master; 0 = none."},
	{"seine_frontier_paused", gauge, byShard, "1 while the shard is paused and leases nothing."},
	{"seine_frontier_silent", gauge, byShard, "1 while the shard's master does not answer."},

	{"seine_frontier_dead_letters", gauge, []string{"cause"}, "Dead letters kept, by cause; from the exporter, as are those that follow."},
	{"seine_frontier_paused_sites", gauge, nil, "Sites that are paused."},
	{"seine_frontier_blocked_sites", gauge, nil, "Sites that are blocked."},
	{"seine_frontier_missing_filters", gauge, nil, "Keys of filters that are missing: their shards admit nothing."},
	{"seine_frontier_feed_elements", gauge, nil, "Elements of the feed that wait."},
	{"seine_frontier_programs", gauge, []string{"kind"}, "Programs at work on the crawl."},
	{"seine_frontier_program_versions", gauge, []string{"version"}, "Programs at work by version."},
	{"seine_frontier_fetchers_limited_by", gauge, []string{"bound"}, "Fetchers by what bounds their rate."},
	{"seine_frontier_fetchers_at_limit", gauge, nil, "Fetchers that are limited by their own workers, processors, memory, files or ports: more fetchers help. Absent while the list of programs cannot be read."},
	{"seine_frontier_pages_per_second", gauge, nil, "Pages a second of all fetchers together, as they say."},

	{"seine_frontier_eta_seconds", gauge, nil, "Time until the crawl is done if nothing new is found; missing while it is not known."},
	{"seine_frontier_slowest_site_seconds", gauge, nil, "What the site that takes longest has left at its delay."},
	{"seine_frontier_due_timestamp_seconds", gauge, nil, "When the crawl is to be done, by --due."},

	{"seine_exporter_up", gauge, nil, "1 when the crawl could be read."},
	{"seine_exporter_read_seconds", gauge, nil, "Time that reading the crawl took."},

	{"seine_redis_up", gauge, byShard, "1 when the shard's master answered."},
	{"seine_redis_shard_info", gauge, []string{"shard", "master"}, "1, which master has the shard."},
	{"seine_redis_uptime_seconds", gauge, byShard, "Of the shard's master, as those that follow."},
	{"seine_redis_clients", gauge, byShard, "Its connections."},
	{"seine_redis_clients_limit", gauge, byShard, "Its maxclients."},
	{"seine_redis_memory_rss_bytes", gauge, byShard, "Its memory as the system counts it."},
	{"seine_redis_replicas", gauge, byShard, "Its replicas."},
	{"seine_redis_replica_lag_bytes", gauge, byShard, "How far the replica that has most is behind it."},
	{"seine_redis_disk_ok", gauge, byShard, "0 when its append-only file or snapshot could not be written."},
	{"seine_redis_commands_total", counter, byShard, "Commands it ran."},
	{"seine_redis_evicted_keys_total", counter, byShard, "Keys it threw away, which must stay 0."},
	{"seine_redis_cpu_seconds_total", counter, byShard, "Processor time it took."},

	{"seine_bloom_items", gauge, byShard, "URLs in the filters."},
	{"seine_bloom_capacity_items", gauge, byShard, "URLs that the filters hold before they grow."},
	{"seine_bloom_bytes", gauge, byShard, "Memory of the filters."},
	{"seine_bloom_layers", gauge, byShard, "Layers of the filter that grew most."},
	{"seine_bloom_probes", gauge, byShard, "Random fingerprints asked so far."},
	{"seine_bloom_false_positive_rate", gauge, byShard, "Share of random fingerprints that the filters take for known, measured."},
	{"seine_bloom_false_positive_rate_low", gauge, byShard, "Lower end of its 95% interval."},
	{"seine_bloom_false_positive_rate_high", gauge, byShard, "Upper end of its 95% interval."},
	{"seine_bloom_lost_urls", gauge, byShard, "URLs that can be expected to be lost as false positives so far."},
	{"seine_bloom_lost_urls_high", gauge, byShard, "Upper end of its 95% interval."},
	{"seine_bloom_over", gauge, byShard, "1 when a filter errs more often than the crawl allows."},

	{"seine_fetch_requests_total", counter, nil, "Requests sent, for pages and robots.txt."},
	{"seine_fetch_signed_requests_total", counter, nil, "Requests sent with a signature, for pages and robots.txt."},
	{"seine_fetch_stale_retries_total", counter, nil, "Requests repeated because a kept connection was closed."},
	{"seine_fetch_body_bytes_total", counter, nil, "Bytes of bodies, decoded, robots.txt among them."},
	{"seine_fetch_wire_bytes_total", counter, nil, "Bytes of answers on the wire, robots.txt among them."},
	{"seine_fetch_connections_total", counter, nil, "Connections made."},
	{"seine_fetch_bound_connections_total", counter, []string{"bind"}, "Connections made from addresses of --bind, by its entries; rule: from those of a site's rule."},
	{"seine_fetch_bound_lost_total", counter, nil, "Connections that failed since this machine has lost the address that they were to leave from."},
	{"seine_fetch_reuses_total", counter, nil, "Requests on a kept connection."},
	{"seine_fetch_open_connections", gauge, nil, "Connections open now."},
	{"seine_fetch_idle_connections", gauge, nil, "Connections that wait for a request."},
	{"seine_fetch_connections_limit", gauge, nil, "Connections that the limit of open files allows now."},
	{"seine_fetch_hosts", gauge, nil, "Hosts with a connection."},
	{"seine_fetch_crowded_hosts", gauge, nil, "Hosts that wait for their address."},
	{"seine_fetch_tls_handshakes_total", counter, []string{"resumed"}, "TLS handshakes."},
	{"seine_fetch_tls_verified_total", counter, []string{"by"}, "Certificates accepted in full handshakes, by what was known of their chains."},
	{"seine_fetch_tls_unverified_total", counter, nil, "TLS handshakes whose certificate nobody verified."},
	{"seine_fetch_dns_hits_total", counter, nil, "Names answered from memory."},
	{"seine_fetch_dns_lookups_total", counter, nil, "Names asked for."},
	{"seine_fetch_dns_failures_total", counter, []string{"kind"}, "Names without an answer."},
	{"seine_fetch_failures_total", counter, []string{"class"}, "Requests that failed."},
	{"seine_fetch_cuts_total", counter, []string{"class"}, "Bodies that ended early and were kept."},
	{"seine_fetch_lenient_total", counter, []string{"what"}, "Answers that were read in spite of faults in their format."},
	{"seine_fetch_proxy_total", counter, []string{"proxy", "result"}, "Connections through proxies."},

	{"seine_sink_records_total", counter, byOutput, "Records written."},
	{"seine_sink_batches_total", counter, byOutput, "Batches written."},
	{"seine_sink_retries_total", counter, byOutput, "Batches that were tried again."},
	{"seine_sink_dropped_total", counter, byOutput, "Records dropped, of outputs that may."},
	{"seine_sink_unfit_total", counter, byOutput, "Records that the output could not take as they are: Kafka gets them without their largest fields, PostgreSQL has a table of them."},
	{"seine_sink_pending_bytes", gauge, byOutput, "Records that wait to be written."},
	{"seine_sink_stalled", gauge, byOutput, "1 while the output cannot write."},
	{"seine_hook_files_total", counter, nil, "Finished files for which --on-rotate is done."},
	{"seine_hook_failures_total", counter, nil, "Commands of --on-rotate that failed."},
	{"seine_hook_pending", gauge, nil, "Finished files that wait for --on-rotate."},
	{"seine_hook_running", gauge, nil, "Commands of --on-rotate that run."},

	{"seine_disk_free_bytes", gauge, []string{"of"}, "Room left to this process on the disk of an output, the state or the overflow."},
	{"seine_disk_size_bytes", gauge, []string{"of"}, "Size of that disk."},

	{"seine_shard_call_seconds", histogram, []string{"script"}, "Time of one call to Redis."},
	{"seine_shard_retries_total", counter, []string{"fault"}, "Calls to Redis that were made again."},
}

const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

var (
	byShard  = []string{"shard"}
	byOutput = []string{"output"}
)
