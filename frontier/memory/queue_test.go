package memory

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"seine/frontier"
)

// TestQueueAgainstSlice holds a queue equal to a slice through chunks of all
// kinds.
func TestQueueAgainstSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const host = "example.com"
		var q queue
		var model []frontier.Entry
		var scratch []byte
		made := 0
		entry := func() frontier.Entry {
			made++
			return frontier.Entry{
				URL:      fmt.Sprintf("%s/%0*d", rapid.SampledFrom([]string{"https://example.com", "http://example.com:81", "https://www.example.com", "https://other.test", "https://"}).Draw(t, "start"), rapid.SampledFrom([]int{1, 60, 2000}).Draw(t, "long"), made),
				Priority: 2, Depth: rapid.Uint32().Draw(t, "depth"), Redirects: rapid.Uint8().Draw(t, "redirects"), Seed: rapid.Bool().Draw(t, "seed"),
				Lost: rapid.Uint8Range(0, 3).Draw(t, "lost"), Attempts: rapid.Uint8Range(0, 200).Draw(t, "attempts"), Meta: rapid.SampledFrom([]string{"", `{"a":1}`}).Draw(t, "meta"),
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			n := rapid.IntRange(1, 30).Draw(t, "n")
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				for range n {
					e := entry()
					scratch = q.pushBack(host, seq(made), &e, scratch)
					model = append(model, e)
				}
			case 1:
				for range n {
					e := entry()
					scratch = q.pushFront(host, seq(made), &e, scratch)
					model = slices.Insert(model, 0, e)
				}
			default:
				for range min(n, len(model)) {
					if got := decoded(t, q.peek(), host); got != model[0] {
						t.Fatalf("first is %+v, want %+v", got, model[0])
					}
					q.pop()
					model = model[1:]
				}
			}
			if q.n != len(model) {
				t.Fatalf("%d entries, want %d", q.n, len(model))
			}
		}
		first, count := rapid.IntRange(0, len(model)).Draw(t, "first"), rapid.IntRange(0, 40).Draw(t, "count")
		var part []frontier.Entry
		q.some(first, count, func(rec []byte) { part = append(part, decoded(t, rec, host)) })
		if want := model[first:min(first+count, len(model))]; !slices.Equal(part, want) {
			t.Fatalf("%d entries from %d of %d on, want %d", len(part), first, len(model), len(want))
		}
		i := 0
		q.each(func(rec []byte) {
			if got := decoded(t, rec, host); got != model[i] {
				t.Fatalf("entry %d is %+v, want %+v", i, got, model[i])
			}
			i++
		})
		if i != len(model) {
			t.Fatalf("each saw %d entries, want %d", i, len(model))
		}
	})
}

// seq is the number of the n-th entry that was made.
func seq(n int) int64 { return int64(n-100) << (n % 50) }

// decoded decodes a record, whose number must be that of its entry.
func decoded(t *rapid.T, rec []byte, host string) frontier.Entry {
	n, rec := numberOf(rec)
	e := decodeEntry(rec, host)
	made, err := strconv.Atoi(e.URL[strings.LastIndexByte(e.URL, '/')+1:])
	if err != nil || n != seq(made) {
		t.Fatalf("%s has number %d, %v", e.URL, n, err)
	}
	return e
}

func BenchmarkQueue(b *testing.B) {
	b.ReportAllocs()
	const host = "example.com"
	var q queue
	var scratch []byte
	i := 0
	for b.Loop() {
		e := frontier.Entry{URL: pageURL("www."+host, i), Depth: uint32(i % 9)}
		scratch = q.pushBack(host, 0, &e, scratch)
		i++
	}
	size := len(q.head) + len(q.tail)
	for _, c := range q.mid {
		size += cap(c.packed) + 24
	}
	b.ReportMetric(float64(size)/float64(q.n), "bytes/URL")
	for range i {
		_, rec := numberOf(q.peek())
		_ = decodeEntry(rec, host)
		q.pop()
	}
}

// pageURL is a URL of about 92 bytes as sites have them.
func pageURL(host string, i int) string {
	return fmt.Sprintf("https://%s/archive/%04d/section-%02d/an-article-about-something-%08x.html", host, 1990+i%37, i%13, uint32(i)*2654435761)
}
