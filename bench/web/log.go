package web

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Request is one request as the server saw it.
type Request struct {
	At     time.Time // when it arrived, by the kernel's clock on Linux, else when its header was read
	Host   string    // without port
	Target string    // path and query as sent
	Status int       // as answered
	Agent  string    // user agent
}

func (w *Web) record(r Request) {
	w.mu.Lock()
	w.log = append(w.log, r)
	w.mu.Unlock()
}

// Log is a copy of the log so far, in order of time.
func (w *Web) Log() []Request {
	w.mu.Lock()
	log := slices.Clone(w.log)
	w.mu.Unlock()
	slices.SortStableFunc(log, func(a, b Request) int { return a.At.Compare(b.At) })
	return log
}

// Forget empties the log and forgets how often URLs were asked for, so that
// the next crawl finds the web as new.
func (w *Web) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = nil
	clear(w.tries)
}

// WriteLog writes requests as lines: nanoseconds, host, target, status and
// agent, separated by tabs.
func WriteLog(dst io.Writer, log []Request) error {
	out := bufio.NewWriter(dst)
	clean := strings.NewReplacer("\t", " ", "\n", " ", "\r", " ")
	for _, r := range log {
		if _, err := fmt.Fprintf(out, "%d\t%s\t%s\t%d\t%s\n", r.At.UnixNano(), r.Host, clean.Replace(r.Target), r.Status, clean.Replace(r.Agent)); err != nil {
			return fmt.Errorf("web: writing log: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("web: writing log: %w", err)
	}
	return nil
}

// ReadLog reads what WriteLog wrote.
func ReadLog(src io.Reader) ([]Request, error) {
	var log []Request
	lines := bufio.NewScanner(src)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		col := strings.SplitN(lines.Text(), "\t", 5)
		if len(col) != 5 {
			return nil, fmt.Errorf("web: line %d of the log has %d columns, not 5", len(log)+1, len(col))
		}
		at, err1 := strconv.ParseInt(col[0], 10, 64)
		status, err2 := strconv.Atoi(col[3])
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("web: line %d of the log: time %q or status %q is no number", len(log)+1, col[0], col[3])
		}
		log = append(log, Request{At: time.Unix(0, at), Host: col[1], Target: col[2], Status: status, Agent: col[4]})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("web: reading log: %w", err)
	}
	return log, nil
}
