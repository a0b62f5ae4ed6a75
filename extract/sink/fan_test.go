package sink_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"seine/extract/sink"
	"seine/extract/sink/jsonl"
	"seine/extract/sink/sinktest"
)

func lines(t *testing.T, path string) (urls []string) {
	t.Helper()
	for r, err := range jsonl.Records(path) {
		if err != nil {
			t.Fatal(err)
		}
		urls = append(urls, r.URL)
	}
	return urls
}

// A fan of files is a sink, and each of its files has all records.
func TestFanContract(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinktest.Target {
		dir := t.TempDir()
		names := []string{"a.jsonl", "b.jsonl.zst"}
		return sinktest.Target{
			Open: func(t *testing.T) sink.Sink {
				var outs []sink.Output
				for _, n := range names {
					s, err := jsonl.Open(jsonl.Config{Path: filepath.Join(dir, n), Linger: -1})
					if err != nil {
						t.Fatal(err)
					}
					outs = append(outs, sink.Output{Name: n, Sink: s})
				}
				return sink.NewFan(outs...)
			},
			URLs: func(t *testing.T) []string {
				a, b := lines(t, filepath.Join(dir, names[0])), lines(t, filepath.Join(dir, names[1]))
				if len(a) != len(b) {
					t.Errorf("%d and %d records", len(a), len(b))
				}
				return a
			},
		}
	})
}

// slow is an output that fails, or acknowledges when the test wants.
type slow struct {
	err  error
	done []func(error)
}

func (h *slow) Write(_ *sink.Record, done func(error)) { h.done = append(h.done, done) }
func (h *slow) Err() error                             { return h.err }
func (h *slow) Close() error                           { return h.err }

// A record is in when the last output has it; who fails is named, and who may
// lose is not asked.
func TestFanNamesOutputs(t *testing.T) {
	a, b, c := new(slow), new(slow), new(slow)
	f := sink.NewFan(sink.Output{Name: "a", Sink: a}, sink.Output{Name: "b", Sink: b}, sink.Output{Name: "c", Sink: c, Drop: true})
	var got []error
	for range 2 {
		f.Write(sinktest.Record(0), func(err error) { got = append(got, err) })
	}
	a.done[0](nil)
	b.done[0](nil)
	if len(got) != 0 {
		t.Fatal("acknowledged before all have it")
	}
	lost := errors.New("lost")
	c.done[0](lost)
	a.done[1](lost)
	c.done[1](nil)
	b.done[1](nil)
	if len(got) != 2 || got[0] != nil || !errors.Is(got[1], lost) || !strings.Contains(got[1].Error(), "output a") {
		t.Errorf("%v", got)
	}
	a.err, c.err = errors.New("full"), errors.New("gone")
	for _, err := range []error{f.Err(), f.Close()} {
		if err == nil || err.Error() != "output a: full" {
			t.Errorf("%v", err)
		}
	}
}
