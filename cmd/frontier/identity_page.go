package main

import (
	_ "embed"
	"html/template"
	"io"
	"net/netip"
	"strings"

	"seine/cmd/internal/boot"
	"seine/fetch/robots"
	"seine/fetch/sign"
)

// who is what a page says of a crawler.
type who struct {
	Contact     string         `placeholder:"URL" help:"Web page or mail address where people reach you, on the page."`
	RobotsAgent string         `placeholder:"TOKEN" help:"Name of the crawler in robots.txt, on the page (seine)."`
	Operator    string         `placeholder:"NAME" help:"Who crawls, on the page."`
	About       string         `placeholder:"TEXT" help:"Why you crawl and what becomes of the pages, on the page."`
	Address     []netip.Prefix `placeholder:"CIDR" help:"Networks that requests come from, on the page. Repeatable."`
}

//go:embed identity_page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// check refuses what no page can say.
func (p *who) check() error {
	if p.RobotsAgent != "" && robots.Token(p.RobotsAgent) != p.RobotsAgent {
		return boot.Usage("robots-agent is %q, which no robots.txt can name", p.RobotsAgent)
	}
	return (&boot.FetchFlags{Contact: p.Contact, Sign: "always"}).Check()
}

// print writes the page, which needs no other file.
func (p *who) print(w io.Writer, agent string, keys []*sign.Key) error {
	link := p.Contact
	if strings.Contains(link, "@") && !strings.Contains(link, ":") {
		link = "mailto:" + link
	}
	name := p.RobotsAgent
	if name == "" {
		name = "seine"
	}
	return pageTemplate.Execute(w, map[string]any{
		"Name": name, "Who": p, "Link": link, "Agent": agent, "Keys": keys, "UserAgent": boot.UserAgent(p.Contact),
	})
}
