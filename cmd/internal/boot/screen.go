package boot

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"seine/fetch"
	"seine/fetch/crawl"
)

// Screen shows how a crawl goes: one line that changes on a terminal, else log
// lines, and a table at the end.
type Screen struct {
	out   io.Writer
	log   *slog.Logger
	live  bool
	width int
	last  crawl.Progress
}

// NewScreen returns a screen that writes to w, which is stderr.
func NewScreen(w io.Writer, log *slog.Logger) *Screen {
	s := &Screen{out: w, log: log}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.live = true
		s.width, _, _ = term.GetSize(int(f.Fd()))
	}
	return s
}

// Every is how often Show wants to be called.
func (s *Screen) Every() time.Duration {
	if s.live {
		return time.Second
	}
	return 10 * time.Second
}

// Show shows progress since the last call: of this process, where it does not
// name the crawl.
func (s *Screen) Show(p crawl.Progress) {
	span := max(p.Elapsed-s.last.Elapsed, time.Millisecond).Seconds()
	pages := float64(p.Done+p.Dead-s.last.Done-s.last.Dead) / span
	bytes := uint64(float64(p.Wire-s.last.Wire) / span)
	s.last = p
	if !s.live {
		log := s.log
		if p.GivesUp > 0 {
			log = log.With("gives_up_in", p.GivesUp.Round(time.Second))
		}
		log.Info("crawling", "pages_per_s", int(pages), "bytes_per_s", bytes, "done", p.Done, "dead", p.Dead,
			"limited_by", p.Limit, "crawl_queued", p.Queued, "crawl_waiting", p.Waiting, "crawl_known", p.Known)
		return
	}
	limit := "limit " + p.Limit
	if p.GivesUp > 0 {
		limit += ", gives up in " + p.GivesUp.Round(time.Second).String()
	}
	fmt.Fprintf(s.out, "\r\x1b[K%s", fit(s.width, fmt.Sprintf("%5.0f pages/s", pages), limit,
		fmt.Sprint("done ", p.Done), fmt.Sprint("crawl queued ", p.Queued), fmt.Sprint("dead ", p.Dead),
		fmt.Sprint("crawl waiting ", p.Waiting), fmt.Sprint("crawl known ", p.Known), Bytes(bytes)+"/s"))
}

// fit joins as many parts as stand whole in a line of width columns, 0 unknown;
// the last column stays free, for some terminals wrap there.
func fit(width int, parts ...string) string {
	line := parts[0]
	for _, part := range parts[1:] {
		if width > 0 && len(line)+2+len(part) >= width {
			break
		}
		line += "  " + part
	}
	if width > 0 && len(line) >= width {
		line = line[:width-1]
	}
	return line
}

// Summary writes the table at the end; ended is how the run ended.
func (s *Screen) Summary(p crawl.Progress, ended string) {
	if s.live {
		fmt.Fprint(s.out, "\r\x1b[K")
	}
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	defer w.Flush()
	seconds := max(p.Elapsed.Seconds(), 0.001)
	fmt.Fprintf(w, "duration\t%s\n", p.Elapsed.Round(time.Millisecond))
	if left := p.Queued + p.Waiting; left > 0 {
		ended += ", " + Number(left, "URL") + " of the crawl left"
	}
	fmt.Fprintf(w, "ended\t%s\n", ended)
	fmt.Fprintf(w, "URLs\t%d done, %d dead, %d retries\t%.0f/s\n", p.Done, p.Dead, p.Retried, float64(p.Done+p.Dead)/seconds)
	if len(p.Causes) > 0 {
		fmt.Fprintf(w, "failed tries\tby cause, those that were retried too\n")
	}
	for _, cause := range slices.Sorted(maps.Keys(p.Causes)) {
		fmt.Fprintf(w, "  %s\t%d%s\n", cause, p.Causes[cause], remedy(cause))
	}
	for _, cause := range slices.Sorted(maps.Keys(p.BackedOff)) {
		a := p.BackedOff[cause]
		fmt.Fprintf(w, "backed off\t%s could not be crawled: %s\t%s\n", Number(int64(a.Sites), "site"), cause, a.Text)
	}
	var answers uint64
	for _, n := range p.Classes[1:] {
		answers += n
	}
	fmt.Fprintf(w, "answers\t%d\n", answers)
	for i, n := range p.Classes {
		if n > 0 && i > 0 {
			fmt.Fprintf(w, "  %dxx\t%d\n", i, n)
		}
	}
	fmt.Fprintf(w, "bytes\t%s bodies, %s on the wire\t%s/s\n", Bytes(p.Bytes), Bytes(p.Wire), Bytes(uint64(float64(p.Wire)/seconds)))
	fmt.Fprintf(w, "links\t%d on pages\n", p.Links)
	fmt.Fprintf(w, "new URLs\t%d of links, redirects, sitemaps and the feed\n", p.New)
}

// remedy is what helps against a cause, where a flag does.
func remedy(cause string) string {
	if cause == fetch.ClassGuard {
		return ", private addresses; --allow-net CIDR permits a network"
	}
	return ""
}

// Bytes is n for people, in powers of 1024.
func Bytes(n uint64) string {
	const units = "kMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v := float64(n) / 1024
	i := 0
	for ; v >= 1024 && i < len(units)-1; i++ {
		v /= 1024
	}
	return strings.Replace(fmt.Sprintf("%.1f %cB", v, units[i]), ".0 ", " ", 1)
}

// Number is n things of a kind whose plural is regular: "1 URL", "2 URLs".
func Number(n int64, kind string) string {
	if n != 1 {
		kind += "s"
	}
	return fmt.Sprintf("%d %s", n, kind)
}
