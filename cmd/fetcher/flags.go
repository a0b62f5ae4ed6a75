package main

import (
	"time"

	"seine/cmd/internal/boot"
	"seine/fetch"
)

// FetchFlags bound what one fetch may cost.
type FetchFlags struct {
	Contact        string        `group:"polite" placeholder:"URL" help:"Where the operators of sites can reach you; goes into the User-Agent."`
	MaxBody        boot.Size     `group:"net" default:"10M" placeholder:"BYTES" help:"Decoded body (${default})."`
	MaxHeader      boot.Size     `group:"net" default:"32K" placeholder:"BYTES" help:"Header of an answer (${default})."`
	ConnectTimeout time.Duration `group:"net" default:"10s" placeholder:"D" help:"Name and connection (${default})."`
	ReadTimeout    time.Duration `group:"net" default:"20s" placeholder:"D" help:"First byte, and silence between reads (${default})."`
	FetchTimeout   time.Duration `group:"net" default:"60s" placeholder:"D" help:"All of one fetch (${default})."`
	MaxRedirects   int           `group:"net" default:"10" placeholder:"N" help:"Redirects in a row (${default})."`
	MaxLinks       int           `group:"net" default:"20000" placeholder:"N" help:"Links taken from one page (${default})."`
	Attempts       int           `group:"net" default:"4" placeholder:"N" help:"Fetches of one URL at most (${default})."`
	GiveUp         time.Duration `group:"run" default:"10m" placeholder:"D" help:"When the crawl ends by itself: how long a site may stay unreachable (${default})."`
	AcceptTypes    []string      `group:"net" placeholder:"TYPE,..." help:"Media types whose body is read (HTML, XML, text)."`
	FetchAll       bool          `group:"net" help:"Read bodies of every media type."`
	Insecure       bool          `group:"net" name:"insecure-skip-verify" help:"Do not verify certificates of sites. For tests."`
	CA             string        `group:"net" name:"ca" placeholder:"FILE" help:"PEM certificates that sites may have, beside the system's."`
	Proxy          []string      `group:"net" placeholder:"URL,..." help:"http:// or socks5:// proxies; sites are spread over them and stay."`
	NoProxy        string        `group:"net" env:"SEINE_NO_PROXY,NO_PROXY" placeholder:"HOSTS" help:"Hosts fetched without a proxy."`
}

// config is the fetch layer as the flags have it.
func (g *grammar) fetchConfig(userAgent string) fetch.Config {
	return fetch.Config{
		UserAgent:          userAgent,
		MaxBody:            int64(g.MaxBody),
		MaxHeader:          int(g.MaxHeader),
		ConnectTimeout:     g.ConnectTimeout,
		ReadTimeout:        g.ReadTimeout,
		FetchTimeout:       g.FetchTimeout,
		AllowNet:           g.AllowNet,
		ConnectTo:          g.ConnectTo,
		InsecureSkipVerify: g.Insecure,
		CAFile:             g.CA,
		Proxies:            g.Proxy,
		NoProxy:            g.NoProxy,
		AcceptTypes:        g.AcceptTypes,
		FetchAll:           g.FetchAll,
	}
}
