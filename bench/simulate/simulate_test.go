package simulate

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestNewSeeds simulates fleets that nobody saw before: for a minute, or as many as
// SEINE_SIMULATE_SEEDS says; SEINE_SIMULATE_FROM is the first seed.
func TestNewSeeds(t *testing.T) {
	from, ends := number(t, "SEINE_SIMULATE_FROM", time.Now().UnixMilli()), time.Now().Add(time.Minute)
	if testing.Short() {
		ends = time.Now().Add(10 * time.Second)
	}
	seeds := number(t, "SEINE_SIMULATE_SEEDS", 0)
	for i := int64(0); i < seeds || seeds == 0 && time.Now().Before(ends); i++ {
		p := newPlan(uint64(from + i))
		began := time.Now()
		w := simulate(t, p, nil)
		t.Logf("seed %d: %d fetchers, %d shards, %d sites, %d faults: %v in %v, %d requests, %d doubtful, %d operations lost with masters", p.Seed, p.Fetchers, p.Shards, p.Sites,
			len(p.Faults), w.ended.Round(time.Second), time.Since(began).Round(time.Millisecond), w.requests, w.doubtful, w.lostOperations)
		if w.fault != "" {
			report(t, p, w)
			if !testing.Short() {
				shrink(t, p, w.fault)
			}
		}
	}
}

// number is a setting of the environment.
func number(t *testing.T, name string, otherwise int64) int64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestFound simulates again what found a fault once: the lines of found.txt.
func TestFound(t *testing.T) {
	text, err := os.ReadFile("found.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line[0] == '#' {
			continue
		}
		what, plan, ok := strings.Cut(strings.TrimSpace(line), ": ")
		p, _, err := parsePlan(strings.ReplaceAll(plan, "; ", "\n"))
		if !ok || err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		t.Run(what, func(t *testing.T) {
			if w := simulate(t, p, nil); w.fault != "" {
				report(t, p, w)
			}
		})
	}
}

// TestReplay simulates what the file SEINE_SIMULATE_REPLAY says: a plan, with or without
// the steps that it is to follow. It repeats it up to a hundred times until it fails.
func TestReplay(t *testing.T) {
	name := os.Getenv("SEINE_SIMULATE_REPLAY")
	if name == "" {
		t.Skip("SEINE_SIMULATE_REPLAY names no file")
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	p, steps, err := parsePlan(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if w := simulate(t, p, steps); w.fault != "" {
			t.Logf("run %d", i+1)
			report(t, p, w)
			return
		}
	}
	t.Log("it did not fail in 100 runs")
}

// TestSameSteps: the same plan takes the same steps, as long as the scheduler lets
// goroutines run in the same order.
func TestSameSteps(t *testing.T) {
	if racing {
		t.Skip("with the race detector the scheduler throws dice")
	}
	p := &plan{Seed: 1, Fetchers: 5, Shards: 6, Sites: 30, Pages: 10, PerSite: 1, Alone: 1}
	p.Faults = []fault{{faultLoss, seconds(5), seconds(60), 0}, {faultKill, seconds(20), seconds(30), 1}, {faultMove, seconds(40), seconds(9), 2}, {faultStale, seconds(60), seconds(9), 3}}
	first := simulate(t, p, nil)
	if first.fault != "" {
		report(t, p, first)
	}
	for range 5 {
		second := simulate(t, p, nil)
		if bytes.Equal(first.steps, second.steps) {
			return
		}
		a, b := bytes.Split(first.steps, []byte("\n")), bytes.Split(second.steps, []byte("\n"))
		for i := range min(len(a), len(b)) {
			if !bytes.Equal(a[i], b[i]) {
				t.Logf("after %d of %d and %d steps:\n%s\n%s", i, len(a), len(b), a[i], b[i])
				break
			}
		}
		first = second
	}
	t.Error("no two of six runs took the same steps")
}

// report fails the test with what did not hold, and writes plan and steps to a file.
func report(t *testing.T, p *plan, w *world) {
	file, err := os.CreateTemp("", fmt.Sprintf("simulate-%d-*.txt", p.Seed))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	fmt.Fprintf(file, "%s# %s\n%s", p, strings.ReplaceAll(w.fault, "\n", "\n# "), w.steps)
	t.Errorf("seed %d: %s\n%splan and steps: %s\nagain: SEINE_SIMULATE_REPLAY=%s go test ./bench/simulate -run TestReplay", p.Seed, w.fault, p, file.Name(), file.Name())
}

// shrink looks for a smaller plan that fails too, for a minute.
func shrink(t *testing.T, p *plan, fault string) {
	ends := time.Now().Add(time.Minute)
	fails := func(p *plan) bool {
		for range 3 {
			if time.Now().After(ends) {
				return false
			}
			if w := simulate(t, p, nil); w.fault != "" {
				fault = w.fault
				return true
			}
		}
		return false
	}
	for smaller := true; smaller; {
		smaller = false
		for _, try := range p.smaller() {
			if fails(try) {
				p, smaller = try, true
				break
			}
		}
	}
	t.Logf("smallest plan found: %s\n%s", fault, strings.ReplaceAll(strings.TrimSpace(p.String()), "\n", "; "))
}

// smaller are plans with a little less in them.
func (p *plan) smaller() (list []*plan) {
	change := func(f func(*plan)) {
		c := *p
		c.Faults = slices.Clone(p.Faults)
		f(&c)
		list = append(list, &c)
	}
	if n := len(p.Faults); n > 1 {
		change(func(c *plan) { c.Faults = c.Faults[:n/2] })
		change(func(c *plan) { c.Faults = c.Faults[n/2:] })
	}
	for i := range p.Faults {
		change(func(c *plan) { c.Faults = slices.Delete(c.Faults, i, i+1) })
	}
	for _, n := range []*int{&p.Sites, &p.Pages, &p.Fetchers, &p.Shards} {
		if *n > 1 {
			was := *n
			for _, less := range []int{was / 2, was - 1} {
				*n = less
				change(func(*plan) {})
			}
			*n = was
		}
	}
	return list
}
