package fetch

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"golang.org/x/net/http/httpguts"

	"seine/fetch/egress"
	"seine/fetch/resolver"
	"seine/fetch/sign"
)

// Config of a Client; zero fields are the documented defaults.
type Config struct {
	UserAgent      string // default "seine"
	Accept         string // default HTML and XML before the rest
	AcceptMarkdown bool   // the default is Markdown before HTML, and its type is one of AcceptTypes
	From           string // mail address of who is responsible (RFC 9110, section 10.1.2), "" = none is sent

	Signer    *sign.Signer // signs each request, nil: none is signed
	SignAsked bool         // of the requests only those with Request.Sign are signed

	MaxBody        int64 // bytes of a decoded body, default 10 MiB; on the wire, and between two encodings, a compressed one may be 1/16 + 64 KiB larger
	MaxHeader      int   // bytes of a response's header, interim answers included, default 32 KiB
	MaxHeaderCount int   // header lines, default 256

	ConnectTimeout   time.Duration // name, TCP and proxy together, default 10 s
	TLSTimeout       time.Duration // handshake, default 10 s
	FirstByteTimeout time.Duration // from sending to the first byte, default ReadTimeout; ends up to 1/8 later
	ReadTimeout      time.Duration // silence between two reads, default 20 s; ends up to 1/8 later
	FetchTimeout     time.Duration // all of one Do, default 60 s

	MaxConnsPerHost int           // exchanges with one host at once, others wait, default 16
	MaxConns        int           // connections open at once, default what the limit of open files allows, less an eighth (at least 64) for others
	MaxIdle         int           // idle ones of them at most, default MaxConns
	KeepAlive       time.Duration // an idle connection is closed after, or when its server said that it closes it; at most 5 min, default 30 s where the server says nothing, else 5 min
	Memory          int64         // bytes that idle connections, TLS sessions, verified certificates and names may take together, default an eighth of Go's memory limit, 128 MiB where there is none

	AllowNet  []netip.Prefix // networks that the guard permits though they are not public
	ConnectTo []string       // rules HOST1:PORT1:HOST2:PORT2 as of curl; the first that matches counts; no way around the guard

	TLSLegacy          bool   // RSA key exchange is offered too, for all that Request.TLSLegacy does not name
	InsecureSkipVerify bool   // certificates are not verified; each such handshake is counted
	CAFile             string // PEM file of authorities trusted beside the system's
	NoSessionCache     bool   // every TLS connection makes a full handshake

	Bind []string // addresses and networks of this machine that connections leave from, see package egress; not beside Proxies; default what the system chooses

	Proxies []string // http://[user:pass@]host:port or socks5://…; sites are spread over them and stay
	NoProxy string   // hosts fetched directly, as the NO_PROXY variable

	Resolver       Resolver      // default one of this package's that asks DNS
	DNS            []string      // servers IP or IP:PORT asked in turn, default those of resolv.conf, whose search list and ndots hold then
	DNSTTL         time.Duration // an address is believed for as long as its TTL says, at most this, default 10 min; 5 min where Resolver gives no TTL
	DNSMinTTL      time.Duration // and at least this, default 10 s
	DNSNegativeTTL time.Duration // how long a failure is believed, and the lack of a name at least, default 10 s
	DNSEntries     int           // names remembered, default as many as fit a quarter of Memory

	AcceptTypes []string // media types of Client.Accepts, default DefaultTypes
	FetchAll    bool     // Client.Accepts says yes to every type

	PerAddress float64 // requests a second to one address by all fetchers of the crawl, as Prepare spaces them out; default no bound

	Metrics *metrics.Set // counters are registered here, default a set of its own
}

const (
	readBuffer = 16 << 10 // in front of a connection: the header, and the pieces of a body as it is handed on
	wideBuffer = 64 << 10 // of a body that comes faster than that: fewer reads
	chunkSize  = 16 << 10 // pieces of a body as decoders of br and zstd hand it on
)

// Memory goes where a byte saves most. A session of half a KB spares a handshake in full,
// some 500 us; an idle connection of 10 to 30 KB spares a resumed one, some 300. So sessions
// come first, and idle connections have what the others leave.
const (
	nameBytes         = 512     // of a name: its entry with a few addresses
	wholeSessionBytes = 9 << 10 // of a session with the server's chain
)

// sessionShare is what sessions may take of a memory, idleShare what idle connections
// may take together with them. A quarter is for names and an eighth for what was
// verified.
func sessionShare(memory int64) int64 { return memory / 16 * 7 }
func idleShare(memory int64) int64    { return memory / 16 * 10 }

// maxKeepAlive is how long an idle connection is kept at most, whatever its server says.
const (
	maxKeepAlive     = 5 * time.Minute
	defaultKeepAlive = 30 * time.Second
)

func (c Config) withDefaults() Config {
	c.UserAgent = cmp.Or(c.UserAgent, "seine")
	if c.AcceptMarkdown {
		c.Accept = cmp.Or(c.Accept, "text/markdown,text/html;q=0.9,application/xhtml+xml;q=0.9,application/xml;q=0.8,*/*;q=0.7")
	}
	c.Accept = cmp.Or(c.Accept, "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
	c.MaxBody = cmp.Or(c.MaxBody, 10<<20)
	c.MaxHeader = cmp.Or(c.MaxHeader, 32<<10)
	c.MaxHeaderCount = cmp.Or(c.MaxHeaderCount, 256)
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, 10*time.Second)
	c.TLSTimeout = cmp.Or(c.TLSTimeout, 10*time.Second)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, 20*time.Second)
	c.FirstByteTimeout = cmp.Or(c.FirstByteTimeout, c.ReadTimeout)
	c.FetchTimeout = cmp.Or(c.FetchTimeout, 60*time.Second)
	c.MaxConnsPerHost = cmp.Or(c.MaxConnsPerHost, 16)
	c.MaxConns = cmp.Or(c.MaxConns, connsWithin(fileLimit()))
	c.Memory = cmp.Or(c.Memory, cacheMemory())
	c.MaxIdle = cmp.Or(c.MaxIdle, c.MaxConns)
	c.DNSTTL = cmp.Or(c.DNSTTL, 10*time.Minute)
	c.DNSMinTTL = cmp.Or(c.DNSMinTTL, 10*time.Second)
	c.DNSNegativeTTL = cmp.Or(c.DNSNegativeTTL, 10*time.Second)
	c.DNSEntries = cmp.Or(c.DNSEntries, max(1, int(c.Memory/4/nameBytes)))
	if len(c.AcceptTypes) == 0 {
		c.AcceptTypes = DefaultTypes()
	}
	if c.AcceptMarkdown {
		c.AcceptTypes = append(slices.Clone(c.AcceptTypes), "text/markdown")
	}
	if c.Metrics == nil {
		c.Metrics = metrics.NewSet()
	}
	return c
}

// Validate says everything that is wrong with c.
func (c *Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("fetch: "+format, args...)) }
	for _, d := range []struct {
		name string
		v    time.Duration
	}{
		{"ConnectTimeout", c.ConnectTimeout}, {"TLSTimeout", c.TLSTimeout}, {"FirstByteTimeout", c.FirstByteTimeout},
		{"ReadTimeout", c.ReadTimeout}, {"FetchTimeout", c.FetchTimeout}, {"KeepAlive", c.KeepAlive},
		{"DNSTTL", c.DNSTTL}, {"DNSMinTTL", c.DNSMinTTL}, {"DNSNegativeTTL", c.DNSNegativeTTL},
	} {
		if d.v < 0 {
			fault("%s is %s, it cannot be negative", d.name, d.v)
		}
	}
	for _, n := range []struct {
		name string
		v    int64
	}{
		{"MaxBody", c.MaxBody}, {"MaxHeader", int64(c.MaxHeader)}, {"MaxHeaderCount", int64(c.MaxHeaderCount)},
		{"MaxConnsPerHost", int64(c.MaxConnsPerHost)}, {"MaxConns", int64(c.MaxConns)}, {"MaxIdle", int64(c.MaxIdle)}, {"Memory", c.Memory},
		{"DNSEntries", int64(c.DNSEntries)},
	} {
		if n.v < 0 {
			fault("%s is %d, it cannot be negative", n.name, n.v)
		}
	}
	if c.KeepAlive > maxKeepAlive {
		fault("keep-alive is %s, must be at most %s", c.KeepAlive, maxKeepAlive)
	}
	for _, h := range [][2]string{{"UserAgent", c.UserAgent}, {"Accept", c.Accept}, {"From", c.From}} {
		if !httpguts.ValidHeaderFieldValue(h[1]) {
			fault("%s %q holds bytes that no header may have", h[0], h[1])
		}
	}
	if c.PerAddress < 0 || math.IsNaN(c.PerAddress) {
		fault("PerAddress is %v, it cannot be negative", c.PerAddress)
	}
	for _, server := range c.DNS {
		if _, err := resolver.ParseServer(server); err != nil {
			fault("DNS: %w", err)
		}
	}
	for _, rule := range c.ConnectTo {
		if _, err := parseConnectTo(rule); err != nil {
			faults = append(faults, err)
		}
	}
	for _, entry := range c.Bind {
		if _, err := egress.Parse(entry); err != nil {
			fault("bind: %w", err)
		}
	}
	if len(c.Bind) > 0 && len(c.Proxies) > 0 {
		fault("bind and proxy: sites see the address of the proxy; give one of them")
	}
	for i, raw := range c.Proxies {
		if _, err := parseProxy(raw); err != nil {
			fault("proxy %d: %w", i+1, err)
		}
	}
	if _, err := NewTypes(c.AcceptTypes); err != nil {
		faults = append(faults, err)
	}
	if c.CAFile != "" {
		if _, err := os.Stat(c.CAFile); err != nil {
			fault("CA file: %w", err)
		}
	}
	return errors.Join(faults...)
}

// parseProxy reads a proxy's URL; its error never shows the credentials.
func parseProxy(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("not a URL")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "socks5" && u.Scheme != "socks5h":
		return nil, fmt.Errorf("scheme %q is not http or socks5", u.Scheme)
	case u.Hostname() == "":
		return nil, errors.New("host is missing")
	case !portOrNone(u.Port()):
		return nil, errPort
	case u.Path != "" && u.Path != "/", u.RawQuery != "":
		return nil, errors.New("a proxy has no path")
	}
	return u, nil
}
