// Package doctor looks at the machine that a fetcher is to run on: open files,
// ports, memory, names, the way out, and whether sites can reach who crawls them.
// What the servers are like is package shard's to find.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"seine/cmd/internal/boot"
	"seine/fetch"
	"seine/fetch/resolver"
	"seine/shard"
)

// Config is what a fetcher on this machine would get.
type Config struct {
	Fetch   fetch.Config // UserAgent included
	Contact string       // page or mail address; "" = none
	Reach   string       // URL to fetch, "" = Contact where that is one
	Memory  int64        // bytes this process may use, 0 = not known
}

// Machine looks at this machine. It asks DNS for one name and fetches one page, the
// contact's, whose owner it is. It lasts as long as that fetch at most.
func Machine(ctx context.Context, cfg Config) []shard.Finding {
	found := []shard.Finding{files(), ports(cfg.Fetch.Bind), memory(cfg.Memory), contact(cfg)}
	return append(found, reach(ctx, cfg)...)
}

func finding(level shard.Level, what, found, do string) shard.Finding {
	if level == shard.OK {
		do = ""
	}
	return shard.Finding{Level: level, What: what, Found: found, Do: do}
}

// Open files below which the default of 1,024 workers a processor does not fit, and
// below which hardly a crawl runs.
const (
	filesEnough = 16 << 10
	filesLeast  = 512
)

func files() shard.Finding {
	const do = "ulimit -n 65536, LimitNOFILE=65536 in the unit, or --ulimit nofile=65536 of a container"
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return finding(shard.Warn, "open files", err.Error(), do)
	}
	level := shard.OK
	switch {
	case limit.Max < filesLeast:
		level = shard.Fail
	case limit.Max < filesEnough:
		level = shard.Warn
	}
	return finding(level, "open files", fmt.Sprintf("%d, of which all but an eighth may be connections", limit.Max), do)
}

// portsEnough are what connections to one address can have; those to others share them.
const portsEnough = 20_000

func ports(bind []string) shard.Finding {
	const what = "ports"
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	var from, to int
	if err == nil {
		_, err = fmt.Sscan(string(text), &from, &to)
	}
	if err != nil {
		return finding(shard.OK, what, "this system does not tell its range of outgoing ports", "")
	}
	level, each := shard.OK, ""
	if to-from+1 < portsEnough {
		level = shard.Warn
	}
	if len(bind) > 0 {
		each = " from each of --bind"
	}
	return finding(level, what, fmt.Sprintf("%d to %d for outgoing connections, %d to one address%s", from, to, to-from+1, each), `sysctl net.ipv4.ip_local_port_range="1024 65000"`)
}

// memoryLeast is what a fetcher with few sites takes twice over.
const memoryLeast = 256 << 20

func memory(bytes int64) shard.Finding {
	level := shard.OK
	if bytes != 0 && bytes < memoryLeast {
		level = shard.Warn
	}
	found := fmt.Sprintf("%.2f GiB, %s", float64(bytes)/(1<<30), boot.Number(int64(runtime.GOMAXPROCS(0)), "processor"))
	return finding(level, "memory", found, "give the process 512 MiB or more, or fetch with a lower --concurrency")
}

func contact(cfg Config) shard.Finding {
	level := shard.OK
	if !strings.Contains(cfg.Fetch.UserAgent, cmp.Or(cfg.Contact, "://")) && !strings.Contains(cfg.Fetch.UserAgent, "@") {
		level = shard.Warn
	}
	return finding(level, "contact", "requests are sent as "+cfg.Fetch.UserAgent, "give --contact, or a --user-agent with a page or a mail address: operators of sites cannot reach you, and many block crawlers that hide")
}

// reach asks for a name and fetches a page.
func reach(ctx context.Context, cfg Config) []shard.Finding {
	target := cmp.Or(cfg.Reach, cfg.Contact)
	if _, host, mail := strings.Cut(target, "@"); mail && !strings.Contains(target, "/") {
		return []shard.Finding{lookup(ctx, cfg, host), finding(shard.Warn, "egress", "not tried: a mail address is no page", "name a page that you may fetch with --reach URL")}
	}
	if target == "" {
		return []shard.Finding{finding(shard.Warn, "egress", "neither names nor the way out were tried", "name a page that you may fetch with --reach URL")}
	}
	u, err := url.Parse(target)
	if err != nil || u.Hostname() == "" {
		return []shard.Finding{finding(shard.Fail, "egress", fmt.Sprintf("%q is no URL", target), "name a page that you may fetch with --reach URL")}
	}
	if len(cfg.Fetch.Proxies) > 0 { // then the proxy asks for names
		return []shard.Finding{get(ctx, cfg, *u)}
	}
	return []shard.Finding{lookup(ctx, cfg, u.Hostname()), get(ctx, cfg, *u)}
}

func lookup(ctx context.Context, cfg Config, name string) shard.Finding {
	const what = "DNS"
	if net.ParseIP(name) != nil {
		return finding(shard.OK, what, name+" needs none", "")
	}
	r, err := resolver.New(resolver.Config{Servers: cfg.Fetch.DNS})
	if err != nil {
		return finding(shard.Fail, what, err.Error(), "name servers with --dns")
	}
	defer r.Close()
	began := time.Now()
	answer, err := r.Lookup(ctx, name)
	took := time.Since(began).Round(100 * time.Microsecond)
	if err != nil {
		do := "name servers that answer with --dns, or see /etc/resolv.conf"
		if e, ok := errors.AsType[*resolver.Error](err); ok && e.Kind == resolver.NoName {
			do = "servers answer; name a page that there is with --contact or --reach"
		}
		return finding(shard.Fail, what, err.Error(), do)
	}
	level := shard.OK
	if took > slowName {
		level = shard.Warn
	}
	return finding(level, what, fmt.Sprintf("%s is %v, in %v", name, answer.Addrs[0], took), "run a caching resolver on this machine, such as unbound, and name it with --dns")
}

// slowName is from where on names hold up a crawl of many sites.
const slowName = time.Second

// noBody takes headers alone.
type noBody struct{}

func (noBody) Begin(*fetch.Response) bool  { return false }
func (noBody) Write(b []byte) (int, error) { return len(b), nil }

func get(ctx context.Context, cfg Config, u url.URL) shard.Finding {
	const what = "egress"
	client, err := fetch.New(cfg.Fetch)
	if err != nil {
		return finding(shard.Fail, what, err.Error(), "correct the flag that it names")
	}
	defer client.Close()
	if u.Path == "" {
		u.Path = "/"
	}
	var resp fetch.Response
	if err := client.Do(ctx, &fetch.Request{URL: u.String()}, &resp, noBody{}); err != nil {
		return finding(shard.Fail, what, err.Error(), "see firewall, routes, --proxy and --allow-net, and try the same with curl")
	}
	level := shard.OK
	if resp.Status >= 400 {
		level = shard.Warn
	}
	return finding(level, what, fmt.Sprintf("%s answers %d after %v", u.Redacted(), resp.Status, resp.FirstByte.Round(100*time.Microsecond)), "operators of sites see this page: repair it, or name another contact")
}
