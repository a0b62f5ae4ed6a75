package main

import (
	"fmt"
	"strings"
	"time"

	"seine/bench/load"
)

// row is one crawl.
type row struct {
	name     string
	sites    int
	pages    int           // of each site
	late     time.Duration // that a site takes to answer
	masters  bool          // on Redis, else in process
	fetchers int           // 0 is one
	files    int           // limit of open files of a fetcher, 0 as it is
	args     []string      // of the fetchers and of the crawl, beside the delay
	span     time.Duration
	https    bool
	long     bool
}

const span = 24 * time.Second

// rows are all crawls, each over http and over https.
var rows = append(plainRows, secured(plainRows)...)

// secureMost is how many sites a crawl over https has at most, for each needs a
// certificate.
const secureMost = 40_000

// secured are the same crawls over https, but for the long ones. One of many sites is four
// times as long: its first connections take a processor for up to half a minute.
func secured(rows []row) (all []row) {
	for _, r := range rows {
		if r.long {
			continue
		}
		r.https, r.sites = true, min(r.sites, secureMost)
		if r.sites > 10_000 && r.pages > 1 {
			r.span, r.pages = max(4*span, 2*r.span), 2*r.pages
		}
		r.name = strings.Replace(r.name, "300000", fmt.Sprint(secureMost), 1) + "_https"
		all = append(all, r)
	}
	return all
}

var plainRows = []row{
	{name: "embedded_2000", sites: 2000, pages: 100, span: span},
	{name: "embedded_2000_late", sites: 2000, pages: 100, late: 500 * time.Millisecond, span: span},
	{name: "masters_15000", sites: 15000, pages: 100, masters: true, span: span},
	{name: "masters_300000_one_page", sites: 300000, pages: 1, masters: true, span: span},
	{name: "fleet_16000", sites: 16000, pages: 100, masters: true, fetchers: 3, span: time.Minute},
	{name: "workers_4096", sites: 15000, pages: 100, args: []string{"--concurrency", "4096"}, span: span},
	{name: "files_256", sites: 2000, pages: 100, files: 256, span: span},
	{name: "files_1024", sites: 2000, pages: 100, files: 1024, span: span},
	{name: "files_20000_one_page", sites: 100000, pages: 1, files: 20000, span: span},
	{name: "masters_1_no_delay", sites: 1, pages: 200000, masters: true, args: []string{"--delay", "0s"}, span: span},
	{name: "masters_1000000_one_page", sites: 1000000, pages: 1, masters: true, span: 150 * time.Second, long: true},
}

// what describes the row.
func (r *row) what() string {
	var b strings.Builder
	switch {
	case !r.masters:
		b.WriteString("embedded")
	case r.fleet() == 1:
		b.WriteString("Redis, one fetcher")
	default:
		fmt.Fprintf(&b, "Redis, %d fetchers", r.fleet())
	}
	fmt.Fprintf(&b, ", %d sites of %d pages", r.sites, r.pages)
	if r.https {
		b.WriteString(" over https")
	}
	if r.late > 0 {
		fmt.Fprintf(&b, " that answer after %v", r.late)
	}
	if r.files > 0 {
		fmt.Fprintf(&b, ", ulimit -n %d", r.files)
	}
	if len(r.args) > 0 {
		b.WriteString(", " + strings.Join(r.args, " "))
	}
	return fmt.Sprintf("%s, %v", b.String(), r.span)
}

func (r *row) fleet() int { return max(r.fetchers, 1) }

// allowed is how many requests a second the delays allow, 0 where sites have one
// page or no delay.
func (r *row) allowed() float64 {
	if r.pages == 1 || r.sites == 1 {
		return 0
	}
	return float64(r.sites) / delay.Seconds()
}

// seeds is a file of seeds: a site's page that links to the rest, or all pages
// of an only site.
func (r *row) seeds(port int) string {
	var b strings.Builder
	scheme := "http"
	if r.https {
		scheme = "https"
	}
	for i := range r.sites {
		fmt.Fprintf(&b, "%s://%s:%d/\n", scheme, load.Address(i), port)
	}
	if r.sites == 1 {
		for p := 1; p < r.pages; p++ {
			fmt.Fprintf(&b, "%s://%s:%d/p%d\n", scheme, load.Address(0), port, p)
		}
	}
	return b.String()
}

// index is a site's first page, page all others.
func (r *row) index() string {
	if r.pages == 1 || r.sites == 1 {
		return page("")
	}
	var links strings.Builder
	for p := 1; p < r.pages; p++ {
		fmt.Fprintf(&links, "<a href=p%d>%d</a>\n", p, p)
	}
	return page(links.String())
}

// page is a page of 1 KB around some links.
func page(links string) string {
	text := "<!doctype html><title>A page of one of many sites</title>\n" + links
	return text + strings.Repeat("<p>Words that lead nowhere.\n", max(0, 1024-len(text))/len("<p>Words that lead nowhere.\n"))
}
