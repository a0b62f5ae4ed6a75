package check

// The five dashboards. Gauges of shards come from each fetcher and from the exporter:
// the largest of a shard counts, and then the sum of the shards.
var boards = []board{
	{name: "overview", title: "Seine: overview", panels: []panel{
		{title: "Done in, if nothing new is found", unit: "s", stat: true, alerts: []string{"SeineLate"}, targets: []target{
			{"", `max(seine_frontier_eta_seconds{$c})`}}},
		{title: "URLs left", unit: "short", stat: true, targets: []target{
			{"", `sum(max by (shard) (seine_frontier_queued_urls{$c} + seine_frontier_waiting_urls{$c} + seine_frontier_open_urls{$c}))`}}},
		{title: "URLs done", unit: "short", stat: true, targets: []target{
			{"", `sum(max by (shard) (seine_frontier_done_urls{$c}))`}}},
		{title: "Requests a second", unit: "reqps", stat: true, targets: []target{
			{"", `sum(rate(seine_crawl_pages_total{$c}[$r]))`}}},
		{title: "Fetchers", unit: "short", stat: true, limits: []float64{1}, low: true, alerts: []string{"SeineFetchersGone", "SeineFetchersFewer"}, targets: []target{
			{"", `max(seine_frontier_programs{$c,kind="fetcher"}) or count(seine_crawl_workers{$c})`}}},
		{title: "Alerts firing", unit: "short", stat: true, limits: []float64{1}, targets: []target{
			{"", `count(ALERTS{$c,alertstate="firing"}) or 0 * count(count by (crawl) (seine_build_info{$c}))`}}},

		{title: "Alerts", unit: "short", targets: []target{
			{"{{alertname}}, {{severity}}", `count by (alertname, severity) (ALERTS{$c,alertstate="firing"}) or 0 * count(count by (crawl) (seine_build_info{$c}))`}}},
		{title: "Requests a second by class of status", unit: "reqps", alerts: []string{"SeineMany4xx", "SeineMany5xx"}, targets: []target{
			{"{{class}}", `sum by (class) (rate(seine_crawl_pages_total{$c}[$r]))`}}},
		{title: "Settled URLs a second", unit: "ops", alerts: []string{"SeineNoProgress"}, targets: []target{
			{"{{kind}}", `sum by (kind) (rate(seine_crawl_outcomes_total{$c}[$r]))`}}},
		{title: "Fetchers by what limits them", unit: "short", alerts: []string{"SeineNoProgress", "SeineWalled"}, targets: []target{
			{"{{bound}}", `sum by (bound) (seine_crawl_limited_by{$c})`}}},
		{title: "URLs now", unit: "short", targets: []target{
			{"queued", `sum(max by (shard) (seine_frontier_queued_urls{$c}))`},
			{"waiting for a retry", `sum(max by (shard) (seine_frontier_waiting_urls{$c}))`},
			{"leased", `sum(max by (shard) (seine_frontier_open_urls{$c}))`},
			{"waiting for a recrawl", `sum(max by (shard) (seine_frontier_recrawl_urls{$c}))`}}},
		{title: "URLs so far", unit: "short", targets: []target{
			{"known", `sum(max by (shard) (seine_frontier_known_urls{$c}))`},
			{"done", `sum(max by (shard) (seine_frontier_done_urls{$c}))`},
			{"dead", `sum(max by (shard) (seine_frontier_dead_urls{$c}))`}}},
		{title: "Bytes a second", unit: "Bps", targets: []target{
			{"on the wire", `sum(rate(seine_crawl_wire_bytes_total{$c}[$r]))`},
			{"bodies", `sum(rate(seine_crawl_body_bytes_total{$c}[$r]))`}}},
		{title: "Time of a request", unit: "s", targets: []target{
			{"median", `histogram_quantile(0.5, sum by (le) (rate(seine_crawl_fetch_seconds_bucket{$c}[$r])))`},
			{"99%", `histogram_quantile(0.99, sum by (le) (rate(seine_crawl_fetch_seconds_bucket{$c}[$r])))`}}},
		{title: "Failures a second by cause", unit: "ops", alerts: []string{"SeineCauseRising"}, targets: []target{
			{"{{cause}}, {{kind}}", `sum by (cause, kind) (rate(seine_crawl_failures_total{$c}[$r]))`}}},
		{title: "Workers", unit: "short", targets: []target{
			{"busy", `sum(seine_crawl_workers_busy{$c})`},
			{"all", `sum(seine_crawl_workers{$c})`}}},
		{title: "Programs by version", unit: "short", targets: []target{
			{"{{program}} {{version}}", `count by (program, version) (seine_build_info{$c})`}}},
		{title: "Pages a second that fetchers say, programs", unit: "short", alerts: []string{"SeineExporterBlind", "SeineExporterGone", "SeineScrapeFailed", "SeineScalerBlind"}, targets: []target{
			{"pages a second", `max(seine_frontier_pages_per_second{$c})`},
			{"{{kind}}s", `max by (kind) (seine_frontier_programs{$c})`},
			{"exporter can read", `max(seine_exporter_up{$c})`},
			{"fetchers at their limit", `max(seine_frontier_fetchers_at_limit{$c})`}}},
		{title: "Processors that programs use", unit: "percentunit", targets: []target{
			{"{{instance}}", `sum by (instance) (rate(process_cpu_seconds_total{$c}[$r]))`}}},
		{title: "Memory of programs", unit: "bytes", targets: []target{
			{"{{instance}}", `sum by (instance) (process_resident_memory_bytes{$c})`}}},
	}},

	{name: "shards", title: "Seine: shards", shards: true, panels: []panel{
		{title: "Queued URLs", unit: "short", targets: []target{
			{"{{shard}}", `max by (shard) (seine_frontier_queued_urls{$s})`}}},
		{title: "Sites with work that are not leased", unit: "short", targets: []target{
			{"{{shard}}", `max by (shard) (seine_frontier_ready_sites{$s})`}}},
		{title: "URLs leased", unit: "short", targets: []target{
			{"{{shard}}", `max by (shard) (seine_frontier_open_urls{$s})`}}},
		{title: "Memory of masters, share of maxmemory", unit: "percentunit", limits: []float64{0.85, 0.99}, alerts: []string{"SeineMemoryHigh", "SeineFull"}, targets: []target{
			{"{{shard}}", `max by (shard) (seine_frontier_memory_bytes{$s} / (seine_frontier_memory_limit_bytes{$s} > 0))`}}},
		{title: "Memory of masters", unit: "bytes", targets: []target{
			{"{{shard}} in use", `max by (shard) (seine_frontier_memory_bytes{$s})`},
			{"{{shard}} maxmemory", `max by (shard) (seine_frontier_memory_limit_bytes{$s})`},
			{"{{shard}} resident", `max by (shard) (seine_redis_memory_rss_bytes{$s})`}}},
		{title: "Candidates a second by verdict", unit: "ops", alerts: []string{"SeineFull"}, targets: []target{
			{"{{verdict}}", `sum by (verdict) (rate(seine_crawl_verdicts_total{$s}[$r]))`}}},
		{title: "Silent or paused", unit: "short", limits: []float64{1}, alerts: []string{"SeineShardSilent"}, targets: []target{
			{"{{shard}} silent", `max by (shard) (seine_frontier_silent{$s})`},
			{"{{shard}} paused", `max by (shard) (seine_frontier_paused{$s})`},
			{"{{shard}} down for the exporter", `1 - max by (shard) (seine_redis_up{$s})`}}},
		{title: "Links to queues of so many URLs are turned away", unit: "short", alerts: []string{"SeineMemoryMark"}, targets: []target{
			{"{{shard}}", `max by (shard) (seine_frontier_queue_cap_urls{$s})`}}},
		{title: "Links turned away for want of memory", unit: "short", alerts: []string{"SeineMemoryMark"}, targets: []target{
			{"{{shard}}", `max by (shard) (seine_frontier_turned_away_urls{$s})`}}},
		{title: "URLs that came back from lost fetchers", unit: "short", alerts: []string{"SeineLeasesLost"}, targets: []target{
			{"{{shard}}", `max by (shard) (seine_frontier_lost_urls{$s})`}}},
		{title: "Masters that can write their disk", unit: "short", limits: []float64{1}, low: true, targets: []target{
			{"{{shard}}", `min by (shard) (seine_redis_disk_ok{$s})`}}, alerts: nil},
		{title: "Keys thrown away a second", unit: "ops", alerts: []string{"SeineKeysEvicted", "SeineRedisDisk"}, targets: []target{
			{"{{shard}}", `sum by (shard) (rate(seine_redis_evicted_keys_total{$s}[$r]))`}}},
		{title: "Commands a second", unit: "ops", targets: []target{
			{"{{shard}}", `max by (shard) (rate(seine_redis_commands_total{$s}[$r]))`}}},
		{title: "Processors that masters use", unit: "percentunit", targets: []target{
			{"{{shard}}", `max by (shard) (rate(seine_redis_cpu_seconds_total{$s}[$r]))`}}},
		{title: "Connections of masters", unit: "short", targets: []target{
			{"{{shard}}", `max by (shard) (seine_redis_clients{$s})`},
			{"{{shard}} maxclients", `max by (shard) (seine_redis_clients_limit{$s})`}}},
		{title: "Time of calls, 99%", unit: "s", targets: []target{
			{"{{script}}", `histogram_quantile(0.99, sum by (le, script) (rate(seine_shard_call_seconds_bucket{$c}[$r]))) >= 0`}}},
		{title: "Calls repeated, admissions no replica acknowledged, a second", unit: "ops", alerts: []string{"SeineNotAcknowledged"}, targets: []target{
			{"{{fault}}", `sum by (fault) (rate(seine_shard_retries_total{$c}[$r]))`},
			{"not acknowledged", `sum(rate(seine_crawl_admissions_not_acked_total{$c}[$r]))`}}},
		{title: "Replicas", unit: "short", alerts: []string{"SeineReplicaLost"}, targets: []target{
			{"{{shard}}", `max by (shard) (seine_redis_replicas{$s})`}}},
		{title: "How far the best replica is behind", unit: "bytes", alerts: []string{"SeineReplicaBehind"}, targets: []target{
			{"{{shard}}", `max by (shard) (seine_redis_replica_lag_bytes{$s})`}}},
		{title: "Masters", unit: "short", targets: []target{
			{"{{shard}} {{master}}", `max by (shard, master) (seine_redis_shard_info{$s})`}}},
		{title: "Uptime of masters", unit: "s", targets: []target{
			{"{{shard}}", `max by (shard) (seine_redis_uptime_seconds{$s})`}}},
	}},

	{name: "sites", title: "Seine: politeness and sites", panels: []panel{
		{title: "Sites with work", unit: "short", targets: []target{
			{"ready", `sum(max by (shard) (seine_frontier_ready_sites{$c}))`},
			{"leased", `sum(max by (shard) (seine_frontier_leased_sites{$c}))`},
			{"paused", `sum(max by (shard) (seine_frontier_paused_ready_sites{$c}))`}}},
		{title: "Visits", unit: "short", targets: []target{
			{"all", `sum(seine_crawl_visits_active{$c})`},
			{"that wait for their site's delay", `sum(seine_crawl_visits_delayed{$c})`}}},
		{title: "What the slowest site has left", unit: "s", alerts: []string{"SeineLate"}, targets: []target{
			{"at its delay", `max(seine_frontier_slowest_site_seconds{$c})`},
			{"all, if nothing new is found", `max(seine_frontier_eta_seconds{$c})`}}},
		{title: "Share of 401, 403, 429", unit: "percentunit", limits: []float64{0.5}, alerts: []string{"SeineBanned"}, targets: []target{
			{"of all answers", `sum(rate(seine_crawl_answers_total{$c,code=~"401|403|429"}[$r])) / sum(rate(seine_crawl_answers_total{$c}[$r]))`}}},
		{title: "Share of 4xx", unit: "percentunit", limits: []float64{0.4}, alerts: []string{"SeineMany4xx"}, targets: []target{
			{"of all requests", `sum(rate(seine_crawl_pages_total{$c,class="4xx"}[$r])) / sum(rate(seine_crawl_pages_total{$c}[$r]))`}}},
		{title: "Share of 5xx", unit: "percentunit", limits: []float64{0.2}, alerts: []string{"SeineMany5xx"}, targets: []target{
			{"of all requests", `sum(rate(seine_crawl_pages_total{$c,class="5xx"}[$r])) / sum(rate(seine_crawl_pages_total{$c}[$r]))`}}},
		{title: "Answers a second by code", unit: "reqps", targets: []target{
			{"{{code}}", `sum by (code) (rate(seine_crawl_answers_total{$c}[$r]))`}}},
		{title: "Share of URLs with a certificate that is refused", unit: "percentunit", limits: []float64{0.1}, alerts: []string{"SeineCertificates"}, targets: []target{
			{"of all settled", `sum(rate(seine_crawl_failures_total{$c,cause="certificate"}[$r])) / sum(rate(seine_crawl_outcomes_total{$c}[$r]))`}}},
		{title: "Dead letters kept by cause", unit: "short", targets: []target{
			{"{{cause}}", `max by (cause) (seine_frontier_dead_letters{$c})`}}},
		{title: "Share of walls", unit: "percentunit", limits: []float64{0.2}, alerts: []string{"SeineWalled"}, targets: []target{
			{"of all answers, {{vendor}}", `sum by (vendor) (rate(seine_crawl_walls_total{$c}[$r])) / on () group_left sum(rate(seine_crawl_answers_total{$c}[$r]))`}}},
		{title: "Paused, blocked, behind walls", unit: "short", targets: []target{
			{"sites behind walls", `sum(max by (shard) (seine_frontier_walled_sites{$c}))`},
			{"sites paused", `max(seine_frontier_paused_sites{$c})`},
			{"sites blocked", `max(seine_frontier_blocked_sites{$c})`},
			{"URLs blocked so far", `sum(max by (shard) (seine_frontier_blocked_urls{$c}))`}}},
		{title: "Fetches that ended in a retry so far", unit: "short", targets: []target{
			{"retried", `sum(max by (shard) (seine_frontier_retried_urls{$c}))`}}},
		{title: "Elements of the feed that wait", unit: "short", targets: []target{
			{"feed", `max(seine_frontier_feed_elements{$c})`}}},
		{title: "Elements of the feed that were refused so far", unit: "short", targets: []target{
			{"refused", `sum(seine_crawl_feed_refused_total{$c})`}}},
		{title: "Links a second", unit: "ops", targets: []target{
			{"seen", `sum(rate(seine_crawl_links_total{$c}[$r]))`},
			{"known to the fetcher itself", `sum(rate(seine_crawl_links_known_total{$c}[$r]))`},
			{"not followed: {{reason}}", `sum by (reason) (rate(seine_crawl_links_refused_total{$c}[$r]))`}}},
		{title: "Pages that were read in part or not, a second", unit: "reqps", targets: []target{
			{"unchanged", `sum(rate(seine_crawl_pages_unchanged_total{$c}[$r]))`},
			{"duplicate", `sum(rate(seine_crawl_pages_duplicate_total{$c}[$r]))`},
			{"refused for a purpose", `sum(rate(seine_crawl_pages_withheld_total{$c}[$r]))`}}},
		{title: "Kinds of content a second", unit: "reqps", targets: []target{
			{"{{kind}}", `sum by (kind) (rate(seine_crawl_media_total{$c}[$r]))`}}},
		{title: "Requests that failed, bodies cut, a second", unit: "ops", targets: []target{
			{"{{class}}", `sum by (class) (rate(seine_fetch_failures_total{$c}[$r]))`},
			{"cut: {{class}}", `sum by (class) (rate(seine_fetch_cuts_total{$c}[$r]))`}}},
		{title: "Connections", unit: "short", targets: []target{
			{"open", `sum(seine_fetch_open_connections{$c})`},
			{"idle", `sum(seine_fetch_idle_connections{$c})`},
			{"limit", `sum(seine_fetch_connections_limit{$c})`},
			{"hosts", `sum(seine_fetch_hosts{$c})`},
			{"hosts that wait for their address", `sum(seine_fetch_crowded_hosts{$c})`}}},
		{title: "Connections a second", unit: "ops", alerts: []string{"SeineAddressLost"}, targets: []target{
			{"made", `sum(rate(seine_fetch_connections_total{$c}[$r]))`},
			{"from {{bind}}", `sum by (bind) (rate(seine_fetch_bound_connections_total{$c}[$r]))`},
			{"failed: its address is lost", `sum(rate(seine_fetch_bound_lost_total{$c}[$r]))`},
			{"used again", `sum(rate(seine_fetch_reuses_total{$c}[$r]))`},
			{"TLS, resumed {{resumed}}", `sum by (resumed) (rate(seine_fetch_tls_handshakes_total{$c}[$r]))`},
			{"TLS, verified by {{by}}", `sum by (by) (rate(seine_fetch_tls_verified_total{$c}[$r]))`}}},
		{title: "Names a second", unit: "ops", targets: []target{
			{"from memory", `sum(rate(seine_fetch_dns_hits_total{$c}[$r]))`},
			{"asked for", `sum(rate(seine_fetch_dns_lookups_total{$c}[$r]))`},
			{"failed: {{kind}}", `sum by (kind) (rate(seine_fetch_dns_failures_total{$c}[$r]))`}}},
		{title: "Signed requests a second, sites that began to want them", unit: "ops", targets: []target{
			{"requests", `sum(rate(seine_fetch_signed_requests_total{$c}[$r]))`},
			{"sites", `sum(rate(seine_crawl_signing_sites_total{$c}[$r]))`}}},
	}},

	{name: "filters", title: "Seine: filters", shards: true, panels: []panel{
		{title: "Fill, as planned", unit: "percentunit", targets: []target{
			{"{{shard}}", `max by (shard) (seine_bloom_items{$s} / seine_bloom_capacity_items{$s})`}}},
		{title: "False positives", unit: "sci", targets: []target{
			{"{{shard}} measured", `max by (shard) (seine_bloom_false_positive_rate{$s})`},
			{"{{shard}} at most", `max by (shard) (seine_bloom_false_positive_rate_high{$s})`}}},
		{title: "Errs more often than the crawl allows", unit: "short", limits: []float64{1}, alerts: []string{"SeineFilterOver"}, targets: []target{
			{"{{shard}}", `max by (shard) (seine_bloom_over{$s})`}}},
		{title: "URLs lost as false positives so far", unit: "short", alerts: []string{"SeineFilterOver"}, targets: []target{
			{"expected", `sum(max by (shard) (seine_bloom_lost_urls{$s}))`},
			{"at most", `sum(max by (shard) (seine_bloom_lost_urls_high{$s}))`}}},
		{title: "Keys of filters that are missing", unit: "short", alerts: []string{"SeineFilterMissing"}, targets: []target{
			{"all shards", `max(seine_frontier_missing_filters{$c})`}}},
		{title: "Memory of filters", unit: "bytes", targets: []target{
			{"{{shard}}", `max by (shard) (seine_bloom_bytes{$s})`}}},
		{title: "URLs in filters", unit: "short", targets: []target{
			{"in filters", `sum(max by (shard) (seine_bloom_items{$s}))`},
			{"planned", `sum(max by (shard) (seine_bloom_capacity_items{$s}))`}}},
		{title: "Layers of the filter that grew most", unit: "short", targets: []target{
			{"{{shard}}", `max by (shard) (seine_bloom_layers{$s})`}}},
		{title: "Random fingerprints asked so far", unit: "short", targets: []target{
			{"{{shard}}", `max by (shard) (seine_bloom_probes{$s})`}}},
		{title: "Share of candidates that are known", unit: "percentunit", targets: []target{
			{"of those that reach Redis", `sum(rate(seine_crawl_verdicts_total{$s,verdict="seen"}[$r])) / sum(rate(seine_crawl_verdicts_total{$s}[$r]))`}}},
		{title: "Share of links that fetchers know themselves", unit: "percentunit", targets: []target{
			{"of all links", `sum(rate(seine_crawl_links_known_total{$c}[$r])) / sum(rate(seine_crawl_links_total{$c}[$r]))`}}},
	}},

	{name: "outputs", title: "Seine: outputs", panels: []panel{
		{title: "Records a second", unit: "ops", targets: []target{
			{"{{output}}", `sum by (output) (rate(seine_sink_records_total{$c}[$r]))`}}},
		{title: "Outputs that cannot write", unit: "short", limits: []float64{1}, alerts: []string{"SeineSinkStalled"}, targets: []target{
			{"{{output}} of {{instance}}", `max by (output, instance) (seine_sink_stalled{$c})`}}},
		{title: "Fetchers that outputs hold up", unit: "short", limits: []float64{1}, alerts: []string{"SeineSinkSlow"}, targets: []target{
			{"fetchers", `sum(seine_crawl_limited_by{$c,bound="sink"})`}}},
		{title: "Disk left", unit: "percentunit", limits: []float64{0.1}, low: true, alerts: []string{"SeineDiskLow"}, targets: []target{
			{"{{of}} of {{instance}}", `min by (of, instance) (seine_disk_free_bytes{$c} / seine_disk_size_bytes{$c})`}}},
		{title: "Disk left in four hours, as it goes", unit: "bytes", limits: []float64{0}, low: true, alerts: []string{"SeineDiskFilling"}, targets: []target{
			{"{{of}} of {{instance}}", `min by (of, instance) (predict_linear(seine_disk_free_bytes{$c}[30m], 4 * 3600))`}}},
		{title: "Records that wait", unit: "bytes", targets: []target{
			{"{{output}} of {{instance}}", `sum by (output, instance) (seine_sink_pending_bytes{$c})`}}},
		{title: "Batches a second", unit: "ops", targets: []target{
			{"{{output}}", `sum by (output) (rate(seine_sink_batches_total{$c}[$r]))`},
			{"{{output}} tried again", `sum by (output) (rate(seine_sink_retries_total{$c}[$r]))`}}},
		{title: "Records lost a second, where an output may", unit: "ops", targets: []target{
			{"{{output}}", `sum by (output) (rate(seine_sink_dropped_total{$c}[$r]))`}}},
		{title: "Records that an output cannot take as they are so far", unit: "short", targets: []target{
			{"{{output}}", `sum by (output) (seine_sink_unfit_total{$c})`}}},
		{title: "Pages that are not settled", unit: "bytes", targets: []target{
			{"{{instance}}", `sum by (instance) (seine_crawl_open_bytes{$c})`}}},
		{title: "Links that go to the overflow a second", unit: "ops", alerts: []string{"SeineOverflow"}, targets: []target{
			{"links", `sum(rate(seine_crawl_overflow_candidates_total{$c}[$r]))`}}},
		{title: "Finished files a second", unit: "ops", targets: []target{
			{"done", `sum(rate(seine_hook_files_total{$c}[$r]))`},
			{"failed", `sum(rate(seine_hook_failures_total{$c}[$r]))`}}},
		{title: "Finished files that wait", unit: "short", targets: []target{
			{"waiting", `sum(seine_hook_pending{$c})`},
			{"under way", `sum(seine_hook_running{$c})`}}},
		{title: "Fields a second", unit: "ops", targets: []target{
			{"{{field}} {{result}}", `sum by (field, result) (rate(seine_crawl_fields_total{$c}[$r]))`}}},
		{title: "Calls of a handler of your own a second", unit: "ops", targets: []target{
			{"{{result}}", `sum by (result) (rate(seine_crawl_handler_calls_total{$c}[$r]))`}}},
	}},
}
