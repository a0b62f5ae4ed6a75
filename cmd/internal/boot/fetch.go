package boot

import (
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"seine/fetch"
)

// FetchFlags say how one fetcher process fetches. Zero values are the defaults
// of package fetch.
type FetchFlags struct {
	Contact string `group:"polite" placeholder:"URL" help:"Web page or mail address where people reach you. It is part of the User-Agent. A mail address is also sent as From."`

	SignKey        string `group:"polite" placeholder:"FILE" help:"Sign requests with this Ed25519 key (PKCS#8 PEM), so that sites can verify who asks. frontier identity --new makes one."`
	SignatureAgent string `group:"polite" placeholder:"URL" help:"https:// URL at which servers find the public half of --sign-key. frontier identity makes what it serves."`
	Sign           string `group:"polite" enum:"always,asked" default:"always" placeholder:"always|asked" help:"always: sign each request. asked: sign requests to sites that sent Accept-Signature within the last day (${default})."`

	MaxBody        Size          `least:"1" group:"net" default:"10M" placeholder:"BYTES" help:"Most bytes of a body after decompression (${default})."`
	MaxHeader      Size          `least:"1" group:"net" default:"32k" placeholder:"BYTES" help:"Most bytes of a response header (${default})."`
	ConnectTimeout time.Duration `least:"1ms" group:"net" default:"10s" placeholder:"D" help:"Time for name lookup, TCP and proxy together (${default})."`
	ReadTimeout    time.Duration `least:"1ms" group:"net" default:"20s" placeholder:"D" help:"Longest time without a byte from the server (${default})."`
	FetchTimeout   time.Duration `least:"1ms" group:"net" default:"60s" placeholder:"D" help:"Time for one whole fetch (${default})."`
	KeepAlive      time.Duration `least:"1ms" group:"net" placeholder:"D" help:"Close an idle connection after this time, or when its server said that it closes it; at most 5m (30s if the server says nothing, else 5m)."`
	MaxRedirects   int           `least:"0" group:"net" default:"10" placeholder:"N" help:"Redirects followed from one URL; 0 means none (${default})."`
	AcceptTypes    []string      `group:"net" placeholder:"TYPE" help:"Media types whose bodies are read (HTML, XML, text)."`
	AcceptMarkdown bool          `group:"net" help:"Ask for Markdown (text/markdown) first, which some sites offer beside HTML."`
	FetchAll       bool          `group:"net" help:"Read bodies of every media type."`

	AllowNet           []netip.Prefix `group:"net" placeholder:"CIDR" help:"Private networks from which Seine may fetch (none)."`
	ConnectTo          []string       `group:"net" placeholder:"HOST:PORT:ADDR:PORT" help:"Connect to ADDR for HOST, as curl does. HOST may begin with *. and an empty HOST or PORT means any."`
	CA                 string         `group:"net" name:"ca" placeholder:"FILE" help:"PEM certificates to trust besides those of the system."`
	TLSLegacy          bool           `group:"net" name:"tls-legacy" help:"Offer RSA key exchange and grant one renegotiation, which some old servers need. For single sites use tls_legacy in the YAML file."`
	InsecureSkipVerify bool           `group:"net" help:"Do not verify certificates of sites. Anyone on the path can then change what you fetch."`
	Bind               []string       `group:"net" placeholder:"ADDR" help:"Addresses and networks of this machine from which requests leave. Each site stays with one address of each family. Not with --proxy."`
	Proxy              []string       `group:"net" sep:"none" placeholder:"URL" help:"http:// or socks5:// proxy, with user and password. Several proxies share the sites. Keep passwords in the file or the environment. Repeatable."`
	DNS                []string       `group:"net" name:"dns" placeholder:"SERVER" help:"DNS servers, as IP or IP:PORT (those of resolv.conf, with its search list)."`
	NoProxy            string         `group:"net" placeholder:"HOSTS" help:"Hosts fetched without a proxy, as in NO_PROXY. Loopback addresses never use one."`

	PerAddress float64       `least:"0" group:"polite" default:"50" placeholder:"N" help:"Requests per second to one IP address, for all hosts behind it. The fetchers share it; 0 means no limit (${default})."`
	RetryCodes []int         `group:"polite" placeholder:"CODE" help:"Statuses after which a URL is tried again (408, 425, 429, 500, 502-504, 520-529)."`
	Attempts   int           `least:"1" group:"polite" default:"4" placeholder:"N" help:"Fetches of one URL before it becomes a dead letter (${default})."`
	GiveUp     time.Duration `least:"1ms" group:"polite" default:"10m" placeholder:"D" help:"With --exit-when-done: give a site up after it was unreachable for this time (${default})."`
}

// Fetch makes the configuration of a fetcher. userAgent is the crawl's own,
// "" for the program's.
func (f *FetchFlags) Fetch(userAgent string, env []string) (fetch.Config, error) {
	if userAgent == "" {
		userAgent = UserAgent(f.Contact)
	}
	signer, err := f.signer()
	if err != nil {
		return fetch.Config{}, err
	}
	c := fetch.Config{
		UserAgent: userAgent, From: mailOf(f.Contact), Signer: signer, SignAsked: f.Sign == signAsked, MaxBody: int64(f.MaxBody), MaxHeader: int(f.MaxHeader),
		ConnectTimeout: f.ConnectTimeout, ReadTimeout: f.ReadTimeout, FetchTimeout: f.FetchTimeout, KeepAlive: f.KeepAlive,
		AcceptTypes: f.AcceptTypes, AcceptMarkdown: f.AcceptMarkdown, FetchAll: f.FetchAll,
		AllowNet: f.AllowNet, ConnectTo: f.ConnectTo, CAFile: f.CA, TLSLegacy: f.TLSLegacy, InsecureSkipVerify: f.InsecureSkipVerify,
		Bind: f.Bind, Proxies: f.Proxy, NoProxy: f.NoProxy, DNS: f.DNS, Memory: cacheMemory(), PerAddress: f.PerAddress,
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		if v, ok := lookup(env, name); ok && c.NoProxy == "" {
			c.NoProxy = v
		}
	}
	if err := c.Validate(); err != nil {
		return c, Usage("%w", err)
	}
	return c, nil
}

// WarnProxy logs that variables which name a proxy are not followed: the guard
// judges the addresses that are dialled, and a proxy dials for itself. Their
// values may hold secrets.
func (f *FetchFlags) WarnProxy(env []string, log *slog.Logger) {
	if len(f.Proxy) > 0 {
		return
	}
	var found []string
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		for _, name := range []string{name, strings.ToLower(name)} {
			if v, _ := lookup(env, name); v != "" {
				found = append(found, name)
			}
		}
	}
	if found != nil {
		log.Warn("the proxy that the environment names is not used: name it with --proxy where that is wanted, for then it is the proxy that resolves and dials, and not this program that judges addresses",
			"variables", strings.Join(found, " "))
	}
}

// UserAgent is what the program calls itself: seine/VERSION, and in brackets
// where to reach those who run it.
func UserAgent(contact string) string {
	agent := "seine/" + Version()
	if contact != "" {
		agent += " (+" + contact + ")"
	}
	return agent
}
