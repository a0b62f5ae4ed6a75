package plan

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Write tells the plan to people, in lines of name and value.
func (p *Plan) Write(w io.Writer) {
	a := &p.Asked
	line := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	line("unit costs of", "%s", p.Machine)
	line("asked", "%s pages on %s sites, the largest %s; %s URLs known, at most %s queued", count(a.Pages), count(a.Sites), count(p.Largest), count(a.Known), count(a.Queued))
	line("", "%s a page, %s on the wire, %.4g links; a site every %.3g s, answers after %s", Bytes(a.Page), Bytes(a.Wire), a.Links, a.interval(), seconds(a.Latency))
	if p.Why != "" {
		line("NOT POSSIBLE", "%s", p.Why)
		line("nearest", "%s", p.Nearest)
	}
	line("time", "%s, bound by %s", span(p.Seconds), p.Bound)
	var curve []string
	for _, at := range p.Curve {
		curve = append(curve, fmt.Sprintf("%.0f%% after %s", 100*at.Share, span(at.Seconds)))
	}
	line("done", "%s", strings.Join(curve, ", "))
	line("rate", "%.4g pages/s, at most %.4g", p.Mean, p.Peak)
	p.writeFetchers(line)
	if p.Redis != nil {
		p.writeRedis(line)
	}
	line("records", "%s", Bytes(p.Disk))
	line("traffic", "%s", Bytes(p.Traffic))
	if p.Cost > 0 {
		line("a million pages", "%.4g", p.Cost)
	}
	for _, b := range p.Breaks {
		line("BREAKS", "%s", b)
	}
	for _, near := range p.Watch {
		line("limit", "%s", near)
	}
	for _, c := range p.Commands {
		line("run", "%s", c)
	}
}

func (p *Plan) writeFetchers(line func(string, string, ...any)) {
	f := &p.Fetchers
	line("fetchers", "%.0f, each %.2f processors, %s, %.3g Mbit/s", f.Count, f.Cores, Bytes(f.Memory), f.Bits/1e6)
	line("", "%.0f requests in flight, %.0f connections (%.0f opened a second), %.0f descriptors", f.InFlight, f.Connections, f.Opened, f.Files)
	line("", "%.0f us a page: %s", p.Page, parts(p.Parts, func(v float64) string { return fmt.Sprintf("%.0f", v) }))
}

func (p *Plan) writeRedis(line func(string, string, ...any)) {
	r := p.Redis
	line("masters", "%.0f with %d shards, each %.2f processors, %s with room (twice with a replica)", r.Masters, r.Shards, r.Cores, Bytes(r.Memory))
	line("", "%.1f us a page", r.Page)
	line("", "in all %s", parts(r.Kinds, Bytes))
}

func parts(list []Part, show func(float64) string) string {
	var texts []string
	for _, p := range list {
		if p.Cost > 0 {
			texts = append(texts, p.Name+" "+show(p.Cost))
		}
	}
	return strings.Join(texts, ", ")
}

// count shows a number as people say it.
func count(v float64) string {
	for _, u := range []struct {
		least float64
		name  string
	}{{1e9, " billion"}, {1e6, " million"}} {
		if v >= u.least {
			return strconv.FormatFloat(v/u.least, 'g', 4, 64) + u.name
		}
	}
	return fmt.Sprintf("%.0f", v)
}

// Bytes shows a size in powers of ten.
func Bytes(v float64) string {
	const units = "kMGTPE"
	if v < 1000 {
		return fmt.Sprintf("%.0f B", v)
	}
	i := -1
	for ; v >= 1000 && i < len(units)-1; i++ {
		v /= 1000
	}
	return fmt.Sprintf("%.3g %cB", v, units[i])
}

// span shows a long time.
func span(s float64) string {
	switch {
	case s >= 2*86400:
		return fmt.Sprintf("%.3g days", s/86400)
	case s >= 2*3600:
		return fmt.Sprintf("%.3g hours", s/3600)
	case s >= 120:
		return fmt.Sprintf("%.3g minutes", s/60)
	}
	return fmt.Sprintf("%.3g s", s)
}

// seconds shows a short time as flags take it.
func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond).String()
}
