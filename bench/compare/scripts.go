package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Redis counts all scripts as one command, EVALSHA. Its SLOWLOG tells them apart,
// by the key that each declares and never has. It is on for scriptTime, after the
// time that is profiled, and notes what takes noted and longer: shorter are
// nearly all commands that scripts call, which would only be slowed down by it.
const (
	scriptTime  = 3 * time.Second
	noted       = 20 * time.Microsecond
	scriptCalls = 20_000 // that a master notes at most
)

// usage is what all masters did: processor time, and calls of scripts.
type usage struct {
	cpu   time.Duration
	calls int
}

// usage asks the masters what they did so far.
func (r *runner) usage() (u usage, err error) {
	used, err := r.masters.Used()
	if err != nil {
		return u, err
	}
	u.cpu = used.All()
	return u, r.masters.Each(func(reply []byte) error {
		for line := range strings.Lines(string(reply)) {
			if !strings.HasPrefix(line, "cmdstat_eval") {
				continue
			}
			_, text, _ := strings.Cut(line, "calls=")
			text, _, _ = strings.Cut(text, ",")
			n, err := strconv.Atoi(text)
			if err != nil {
				return err
			}
			u.calls += n
		}
		return nil
	}, "info", "commandstats")
}

// byScript watches the masters for scriptTime and returns how long each call of a
// script took that was noted, and how many calls there were.
func (r *runner) byScript() (took map[string][]time.Duration, calls int, err error) {
	done := func([]byte) error { return nil }
	if err := r.masters.Each(done, "config", "set", "slowlog-log-slower-than", strconv.FormatInt(noted.Microseconds(), 10), "slowlog-max-len", strconv.Itoa(scriptCalls)); err != nil {
		return nil, 0, err
	}
	before, err := r.usage()
	if err == nil {
		err = r.masters.Each(done, "slowlog", "reset")
	}
	if err != nil {
		return nil, 0, err
	}
	time.Sleep(scriptTime)
	if err := r.masters.Each(done, "config", "set", "slowlog-log-slower-than", "-1"); err != nil {
		return nil, 0, err
	}
	after, err := r.usage()
	if err != nil {
		return nil, 0, err
	}
	took = make(map[string][]time.Duration)
	err = r.masters.Each(func(reply []byte) error { return addCalls(took, reply) }, "--json", "slowlog", "get", "-1")
	return took, after.calls - before.calls, err
}

// addCalls adds the calls of scripts in a reply to SLOWLOG GET.
func addCalls(took map[string][]time.Duration, reply []byte) error {
	var calls [][]json.RawMessage // id, time, microseconds, words, client, its name
	if err := json.Unmarshal(reply, &calls); err != nil {
		return err
	}
	for _, call := range calls {
		var us int64
		var words []string
		if len(call) < 4 {
			return fmt.Errorf("a call of %d fields", len(call))
		}
		if err := json.Unmarshal(call[2], &us); err != nil {
			return err
		}
		if err := json.Unmarshal(call[3], &words); err != nil {
			return err
		}
		if len(words) == 0 || !strings.HasPrefix(strings.ToLower(words[0]), "eval") {
			continue
		}
		for _, word := range words {
			if _, name, ok := strings.Cut(word, "}:never:"); ok {
				took[name] = append(took[name], time.Duration(us)*time.Microsecond)
				break
			}
		}
	}
	return nil
}

// showScripts prints what a page cost the masters by script: calls times their
// median. The sum would not do, for the clock that Redis takes runs on while
// another program has the core. spent is of the time that is profiled, took and
// calls of another.
func showScripts(w io.Writer, spent usage, took map[string][]time.Duration, calls, pages int) {
	fmt.Fprintf(w, "Redis: %.1f us of processor time a page, all masters\n", perPage(spent.cpu, pages))
	more := float64(spent.calls) / float64(max(calls, 1)) // of all calls than while the SLOWLOG was on
	line := func(name string, d time.Duration, about string) {
		fmt.Fprintf(w, "  %-20s %8.2f us/page %5.1f%%  %s\n", name, perPage(d, pages), 100*float64(d)/float64(max(spent.cpu, 1)), about)
	}
	whole := make(map[string]time.Duration)
	rest, short := spent.cpu, calls
	for name, all := range took {
		slices.Sort(all)
		whole[name] = time.Duration(more * float64(len(all)) * float64(all[len(all)/2]))
		rest -= whole[name]
		short -= len(all)
	}
	perThousand := func(n int) float64 { return more * float64(n) * 1000 / float64(max(pages, 1)) }
	for _, name := range byTime(whole) {
		all := took[name]
		line(name, whole[name], fmt.Sprintf("%.1f calls of %v for 1000 pages", perThousand(len(all)), all[len(all)/2]))
	}
	line("the rest", rest, fmt.Sprintf("protocol, sockets; %.1f calls under %v", perThousand(max(short, 0)), noted))
}
