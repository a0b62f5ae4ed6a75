// Command colly crawls the sites of its arguments with gocolly, as plainly as
// its manual shows: every page of the hosts of the seeds once, robots.txt
// obeyed, four requests a host at once, no delay, a JSON line a page in the file
// named first. It prints how many pages those were, each counted once: asked by
// many goroutines, colly fetches some of them twice.
//
// It is a module of its own, so that nobody who builds the crawler gets what
// colly needs.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/gocolly/colly/v2"
)

type page struct {
	URL    string   `json:"url"`
	Status int      `json:"status"`
	Type   string   `json:"type"`
	Links  []string `json:"links"`
}

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: colly FILE URL...")
	}
	f, err := os.Create(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	out := bufio.NewWriter(f)
	n := crawl(os.Args[2:], json.NewEncoder(out))
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(n)
}

func crawl(seeds []string, out *json.Encoder) int {
	var hosts []string
	for _, s := range seeds {
		u, err := url.Parse(s)
		if err != nil {
			log.Fatal(err)
		}
		hosts = append(hosts, u.Hostname())
	}
	c := colly.NewCollector(colly.Async(true), colly.AllowedDomains(hosts...))
	c.IgnoreRobotsTxt = false
	for _, h := range hosts {
		if err := c.Limit(&colly.LimitRule{DomainGlob: h + ":*", Parallelism: 4}); err != nil {
			log.Fatal(err)
		}
	}
	var mu sync.Mutex
	pages := map[string]bool{}
	c.OnResponse(func(r *colly.Response) { r.Ctx.Put("links", &[]string{}) })
	c.OnHTML("a[href], area[href], iframe[src], frame[src]", func(e *colly.HTMLElement) {
		ref := e.Attr("href")
		if ref == "" {
			ref = e.Attr("src")
		}
		ref, _, _ = strings.Cut(ref, "#") // colly takes each fragment for a page of its own
		if u := e.Request.AbsoluteURL(ref); u != "" {
			links := e.Response.Ctx.GetAny("links").(*[]string)
			*links = append(*links, u)
			c.Visit(u) // with a context of its own; what was visited before is refused
		}
	})
	record := func(r *colly.Response) {
		p := page{URL: r.Request.URL.String(), Status: r.StatusCode, Type: r.Headers.Get("Content-Type")}
		if links, ok := r.Ctx.GetAny("links").(*[]string); ok {
			p.Links = *links
		}
		mu.Lock()
		defer mu.Unlock()
		pages[p.URL] = true
		if err := out.Encode(p); err != nil {
			log.Fatal(err)
		}
	}
	c.OnScraped(record)
	c.OnError(func(r *colly.Response, _ error) {
		if r.StatusCode != 0 {
			record(r)
		}
	})
	for _, s := range seeds {
		if err := c.Visit(s); err != nil {
			log.Fatal(err)
		}
	}
	c.Wait()
	return len(pages)
}
