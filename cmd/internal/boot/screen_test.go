package boot

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"seine/fetch/crawl"
)

// A line of 80 columns has what limits the crawl, and no part of it is cut.
func TestLiveLineFits(t *testing.T) {
	var out bytes.Buffer
	p := crawl.Progress{Elapsed: 10 * time.Minute, Limit: "politeness", Done: 1234567, Queued: 12345678, Waiting: 1234567, Dead: 123456, Known: 12345678901}
	for width, want := range map[int]string{0: "B/s", 80: "crawl queued 12345678", 24: "pages/s"} {
		out.Reset()
		s := &Screen{out: &out, live: true, width: width}
		s.Show(p)
		line := strings.TrimPrefix(out.String(), "\r\x1b[K")
		if width > 0 && len(line) >= width || !strings.HasSuffix(line, want) || width != 24 && !strings.Contains(line, "limit politeness") {
			t.Errorf("%d columns: %q", width, line)
		}
	}
}

func TestSummary(t *testing.T) {
	var out bytes.Buffer
	p := crawl.Progress{BackedOff: map[string]crawl.BackedOff{"connect": {Sites: 2, Text: "connection refused"}}, Queued: 3, Waiting: 1, Done: 450, Retried: 2, Dead: 1, Links: 1, New: 2, Causes: map[string]int64{"guard": 1, "status": 2}}
	p.Classes[2], p.Classes[5] = 450, 2
	(&Screen{out: &out}).Summary(p, "by a signal")
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"backed off 2 sites could not be crawled: connect connection refused", "ended by a signal, 4 URLs of the crawl left", "URLs 450 done, 1 dead, 2 retries", "failed tries by cause, those that were retried too guard 1, private addresses; --allow-net CIDR", "status 2", "answers 452 2xx",
		"2xx 450 5xx 2", "links 1 on pages", "new URLs 2 of"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
