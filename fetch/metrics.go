package fetch

import (
	"fmt"

	"github.com/VictoriaMetrics/metrics"

	"seine/fetch/resolver"
	"seine/fetch/trust"
)

// meters are the counters of a client, resolved once.
type meters struct {
	requests, stale, signed  *metrics.Counter
	bodyBytes, wireBytes     *metrics.Counter
	connections, reused      *metrics.Counter
	handshakes, resumed      *metrics.Counter
	unverified               *metrics.Counter
	verified                 []*metrics.Counter // by trust.By
	dnsHits, dnsLookups      *metrics.Counter
	dnsFailures              [4]*metrics.Counter         // by resolver.Kind
	failures, cuts           map[string]*metrics.Counter // by class
	lenient                  [lenientCount]*metrics.Counter
	proxyAnswered, proxyDown []*metrics.Counter // by proxy
	bound                    []*metrics.Counter // by entry of Config.Bind
	boundRule, boundLost     *metrics.Counter
}

func newMeters(s *metrics.Set, proxies int, bind []string) *meters {
	m := &meters{
		requests:    s.GetOrCreateCounter(`seine_fetch_requests_total`),
		stale:       s.GetOrCreateCounter(`seine_fetch_stale_retries_total`),
		signed:      s.GetOrCreateCounter(`seine_fetch_signed_requests_total`),
		bodyBytes:   s.GetOrCreateCounter(`seine_fetch_body_bytes_total`),
		wireBytes:   s.GetOrCreateCounter(`seine_fetch_wire_bytes_total`),
		connections: s.GetOrCreateCounter(`seine_fetch_connections_total`),
		reused:      s.GetOrCreateCounter(`seine_fetch_reuses_total`),
		handshakes:  s.GetOrCreateCounter(`seine_fetch_tls_handshakes_total{resumed="no"}`),
		resumed:     s.GetOrCreateCounter(`seine_fetch_tls_handshakes_total{resumed="yes"}`),
		unverified:  s.GetOrCreateCounter(`seine_fetch_tls_unverified_total`),
		dnsHits:     s.GetOrCreateCounter(`seine_fetch_dns_hits_total`),
		dnsLookups:  s.GetOrCreateCounter(`seine_fetch_dns_lookups_total`),
		boundRule:   s.GetOrCreateCounter(`seine_fetch_bound_connections_total{bind="rule"}`),
		boundLost:   s.GetOrCreateCounter(`seine_fetch_bound_lost_total`),
		failures:    make(map[string]*metrics.Counter),
		cuts:        make(map[string]*metrics.Counter),
	}
	for _, c := range classes {
		m.failures[c.name] = s.GetOrCreateCounter(fmt.Sprintf(`seine_fetch_failures_total{class=%q}`, c.name))
		m.cuts[c.name] = s.GetOrCreateCounter(fmt.Sprintf(`seine_fetch_cuts_total{class=%q}`, c.name))
	}
	for _, by := range trust.All() {
		m.verified = append(m.verified, s.GetOrCreateCounter(fmt.Sprintf(`seine_fetch_tls_verified_total{by=%q}`, by)))
	}
	for i := range m.dnsFailures {
		m.dnsFailures[i] = s.GetOrCreateCounter(fmt.Sprintf(`seine_fetch_dns_failures_total{kind=%q}`, resolver.Kind(i)))
	}
	for i, what := range lenientNames {
		m.lenient[i] = s.GetOrCreateCounter(fmt.Sprintf(`seine_fetch_lenient_total{what=%q}`, what))
	}
	for _, entry := range bind {
		m.bound = append(m.bound, s.GetOrCreateCounter(fmt.Sprintf(`seine_fetch_bound_connections_total{bind=%q}`, entry)))
	}
	for i := range proxies {
		m.proxyAnswered = append(m.proxyAnswered, s.GetOrCreateCounter(fmt.Sprintf(`seine_fetch_proxy_total{proxy="%d",result="answered"}`, i+1)))
		m.proxyDown = append(m.proxyDown, s.GetOrCreateCounter(fmt.Sprintf(`seine_fetch_proxy_total{proxy="%d",result="failed"}`, i+1)))
	}
	return m
}

// countLenient counts an answer by its oddities.
func (m *meters) countLenient(what lenient) {
	for i, c := range m.lenient {
		if what&(1<<i) != 0 {
			c.Inc()
		}
	}
}

// Stats are the counts of a client since New; totals but the last two.
type Stats struct {
	Requests     uint64 // exchanges whose request was sent
	StaleRetries uint64 // requests repeated because a kept connection was closed
	Connections  uint64 // TCP connections made
	Reused       uint64 // exchanges on a kept connection
	Handshakes   uint64 // full TLS handshakes
	Resumed      uint64 // TLS handshakes that resumed a session
	Unverified   uint64 // TLS handshakes whose certificate nobody verified
	DNSLookups   uint64 // questions to the resolver
	DNSHits      uint64 // names answered from memory
	Hosts        int    // hosts with a connection in use or idle, now
	Idle         int    // idle connections, now
}

// Stats reads the counters. With a shared Config.Metrics they are the set's.
func (c *Client) Stats() Stats {
	m := c.m
	s := Stats{
		Requests: m.requests.Get(), StaleRetries: m.stale.Get(), Connections: m.connections.Get(), Reused: m.reused.Get(),
		Handshakes: m.handshakes.Get(), Resumed: m.resumed.Get(), Unverified: m.unverified.Get(),
		DNSLookups: m.dnsLookups.Get(), DNSHits: m.dnsHits.Get(),
	}
	s.Hosts, s.Idle = c.pool.counts()
	return s
}
