package main

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"seine/bench/load"
)

// fetcher is one that runs.
type fetcher struct {
	*load.Program
	metrics string // its address
	client  http.Client
}

// startFetcher runs a fetcher, with a limit of open files if that is not 0.
func startFetcher(name string, args []string, files int) (*fetcher, error) {
	port, err := load.FreePort()
	if err != nil {
		return nil, err
	}
	f := &fetcher{metrics: fmt.Sprintf("127.0.0.1:%d", port)}
	f.client = http.Client{Transport: &http.Transport{}, Timeout: time.Second} // one connection, as early as it can be had
	f.Program, err = load.Run(files, name, append(args, "--metrics-addr", f.metrics, "--log-level", "warn")...)
	return f, err
}

func (f *fetcher) stop() {
	f.client.CloseIdleConnections()
	f.Stop()
}

// ofCrawl is the label that all metrics carry.
var ofCrawl = regexp.MustCompile(`\{crawl="[^"]*",?`)

// readMetrics reads its metrics, without the name of the crawl.
func (f *fetcher) readMetrics() (map[string]float64, error) {
	answer, err := f.client.Get("http://" + f.metrics + "/metrics")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	all := make(map[string]float64)
	for line := range strings.Lines(string(text)) {
		name, v, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseFloat(v, 64); err == nil {
			all[strings.TrimSuffix(ofCrawl.ReplaceAllString(name, "{"), "{}")] = n
		}
	}
	return all, nil
}
