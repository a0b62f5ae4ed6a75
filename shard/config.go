package shard

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

// Config says how to reach Redis. The zero value is one server or cluster
// node at 127.0.0.1:6379 without password; whether it is a cluster is found
// out by asking it.
type Config struct {
	// Addrs are host:port pairs (port 6379 when left out), of a cluster any
	// of its nodes; or one URL, redis://[user:password@]host[:port][,host...][/db],
	// rediss:// for TLS. redis+sentinel://NAME@host[:port][,host...][/db], or
	// rediss+sentinel://, is the server that sentinels there (port 26379) watch as NAME.
	// What the URL says holds against the fields below.
	Addrs    []string
	Username string // ACL user; "" = the default user
	Password Secret
	DB       int // of a single server
	TLS      TLS

	Master           string // name of the master, where Addrs are sentinels; "" = they are servers
	SentinelPassword Secret // of the sentinels; "" = none

	Conns       int           // connections to each master, 1 .. 8; default 3: with that of package bloom a program has at most 4
	DialTimeout time.Duration // to connect, TLS and log-in included; default 5 s
	TryTimeout  time.Duration // for one try of a call, then it is repeated; default 5 s
	MaxPause    time.Duration // longest pause between two tries; default 1 s
	Name        string        // shown in CLIENT LIST; "" = none

	// GiveUp is how long a call is tried before it fails with ErrUnreachable, and
	// further calls to that master fail at once for a while; 0 = until its context ends.
	GiveUp time.Duration
	// Patient has Open go on trying, until its context ends, while no server of the
	// list answers.
	Patient bool
	// Warns, if not nil, is called with what Check would have warned of, of masters that
	// answered only after it. It must not block.
	Warns func(Warning)
	// Metrics has the latencies of scripts and the retries of this client; nil = a set
	// of its own.
	Metrics *metrics.Set
	// Waits, if not nil, is called for calls that have tried for 5 s and go on, of one
	// master at most each 30 s. It must not block.
	Waits func(Wait)
}

// TLS says how connections are encrypted. The system's authorities are
// trusted unless CAFile names others.
type TLS struct {
	Enabled    bool   // also set by a rediss:// URL
	CAFile     string // PEM file of the authorities to trust
	CertFile   string // PEM file of the client's certificate; needs KeyFile
	KeyFile    string
	ServerName string // expected in certificates; default: the host that is dialled
}

// Secret is a text that prints as stars, in logs and errors too. Convert it
// to string where it is used.
type Secret string

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "***"
}

// GoString keeps %#v from showing the secret.
func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// MarshalText keeps encoders from showing the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String names the servers and the user, never the password.
func (c Config) String() string {
	r, err := c.resolve()
	if err != nil {
		return "redis (" + err.Error() + ")"
	}
	var b strings.Builder
	b.WriteString("redis")
	if r.TLS.Enabled {
		b.WriteString("s")
	}
	if r.Master != "" {
		b.WriteString("+sentinel")
	}
	b.WriteString("://")
	if r.Master != "" {
		b.WriteString(r.Master + "@")
	} else if r.Username != "" {
		b.WriteString(r.Username + "@")
	}
	b.WriteString(strings.Join(r.Addrs, ","))
	if r.DB != 0 {
		fmt.Fprintf(&b, "/%d", r.DB)
	}
	return b.String()
}

// Shares reports whether two configurations name a server in common, by address, so
// that what fills one fills the other. Names of one server that differ are unknown.
func (c Config) Shares(other Config) bool {
	a, errA := c.resolve()
	b, errB := other.resolve()
	return errA == nil && errB == nil && slices.ContainsFunc(a.Addrs, func(addr string) bool { return slices.Contains(b.Addrs, addr) })
}

// GoString is String: %#v would show a password inside a URL.
func (c Config) GoString() string { return c.String() }

// MarshalText is String, for encoders.
func (c Config) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Validate reports all faults of the configuration at once.
func (c Config) Validate() error {
	r, err := c.resolve()
	errs := []error{err}
	if r.Conns < 1 || r.Conns > maxConns {
		errs = append(errs, fmt.Errorf("shard: Conns is %d, must be 1 .. %d", c.Conns, maxConns))
	}
	if c.DB < 0 || r.DB < 0 {
		errs = append(errs, fmt.Errorf("shard: DB is %d, must not be negative", r.DB))
	}
	if c.DialTimeout < 0 || c.TryTimeout < 0 || c.MaxPause < 0 || c.GiveUp < 0 {
		errs = append(errs, errors.New("shard: DialTimeout, TryTimeout, MaxPause and GiveUp must not be negative"))
	}
	if (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		errs = append(errs, errors.New("shard: TLS.CertFile and TLS.KeyFile go together"))
	}
	if !r.TLS.Enabled && c.TLS != (TLS{}) {
		errs = append(errs, errors.New("shard: TLS is set up but not enabled; use a rediss:// URL or TLS.Enabled"))
	}
	return errors.Join(errs...)
}

const (
	maxConns     = 8
	defaultConns = 3
)

// resolve takes a URL apart and fills in the defaults.
func (c Config) resolve() (Config, error) {
	var errs []error
	addrs := c.Addrs
	c.Addrs = nil
	for _, a := range addrs {
		hosts := a
		if scheme, rest, ok := strings.Cut(a, "://"); ok {
			var err error
			if hosts, err = c.fromURL(scheme, rest); err != nil {
				errs = append(errs, err)
				continue
			}
			if len(addrs) > 1 {
				errs = append(errs, errors.New("shard: a redis URL stands alone; list further hosts in it, redis://host1:6379,host2:6379"))
			}
		}
		for host := range strings.SplitSeq(hosts, ",") {
			port := "6379"
			if c.Master != "" {
				port = "26379"
			}
			addr, err := hostPort(host, port)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			c.Addrs = append(c.Addrs, addr)
		}
	}
	if len(addrs) == 0 {
		c.Addrs = []string{"127.0.0.1:6379"}
	}
	c.Conns = cmp.Or(c.Conns, defaultConns)
	c.DialTimeout = cmp.Or(c.DialTimeout, 5*time.Second)
	c.TryTimeout = cmp.Or(c.TryTimeout, 5*time.Second)
	c.MaxPause = cmp.Or(c.MaxPause, time.Second)
	return c, errors.Join(errs...)
}

// fromURL reads what follows the :// of a URL and returns its hosts. Its
// errors never quote the part that holds a password.
func (c *Config) fromURL(scheme, rest string) (hosts string, err error) {
	kind, sentinel := strings.CutSuffix(scheme, "+sentinel")
	switch kind {
	case "rediss":
		c.TLS.Enabled = true
	case "redis":
	default:
		return "", errors.New("shard: the URL of a server starts with redis:// or rediss://, that of sentinels with redis+sentinel:// or rediss+sentinel://")
	}
	at := strings.LastIndexByte(rest, '@')
	switch {
	case sentinel:
		if c.Master = rest[:max(at, 0)]; c.Master == "" || strings.Contains(c.Master, ":") {
			return "", errors.New("shard: before the @ of redis+sentinel:// stands the name of the master, as sentinels know it; users and passwords are given beside the URL")
		}
		rest = rest[at+1:]
	case at >= 0:
		user, password, _ := strings.Cut(rest[:at], ":")
		if c.Username, err = url.PathUnescape(user); err != nil {
			return "", errors.New("shard: the user in the redis URL is not well percent-encoded")
		}
		plain, err := url.PathUnescape(password)
		if err != nil {
			return "", errors.New("shard: the password in the redis URL is not well percent-encoded")
		}
		if plain != "" {
			c.Password = Secret(plain)
		}
		rest = rest[at+1:]
	}
	hosts, path, _ := strings.Cut(rest, "/")
	if strings.ContainsAny(rest, "?#") {
		return "", errors.New("shard: a redis URL takes no parameters after ? or #")
	}
	if path != "" {
		if c.DB, err = strconv.Atoi(path); err != nil {
			return "", fmt.Errorf("shard: the path of the redis URL is %q, must be the number of a database", path)
		}
	}
	return hosts, nil
}

// hostPort adds the default port where none is given.
func hostPort(s, byDefault string) (string, error) {
	s = strings.TrimSpace(s)
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		host, port = strings.Trim(s, "[]"), byDefault
		if strings.Contains(host, ":") && net.ParseIP(host) == nil {
			return "", errors.New("shard: an address is not host:port")
		}
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 || host == "" || strings.Contains(host, "@") {
		return "", errors.New("shard: an address is not host:port")
	}
	return net.JoinHostPort(host, port), nil
}

// load reads the files and returns the configuration of the connections, nil
// for plain text.
func (t TLS) load() (*tls.Config, error) {
	if !t.Enabled {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, ClientSessionCache: tls.NewLRUClientSessionCache(64)}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("shard: TLS authorities: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("shard: TLS authorities: no PEM certificate in %s", t.CAFile)
		}
	}
	if t.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("shard: TLS client certificate: %w", err)
		}
		cfg.Certificates = []tls.Certificate{cert}
	}
	return cfg, nil
}
