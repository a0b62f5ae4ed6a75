package frontiertest

import (
	"fmt"
	"strings"

	"seine/frontier"
)

// credentialsKept: what a seed brings its site keeps for the origin, known seed or
// not, until it is replaced or removed; of one origin more than a site may have the
// seed is capped.
func credentialsKept(k *kit) {
	seed := func(path, credentials string) frontier.Candidate {
		c := k.url("a.example", path)
		c.Credentials = credentials
		return c
	}
	of := func(v frontier.Visit) string { return frontier.CredentialsFor(v.Credentials, "https://a.example") }
	sameList(k, "seeds", k.admit(seed("p0", "u:1"), k.url("a.example", "p1"), seed("p2", "u:2"), k.url("b.example", "p0")),
		frontier.Admitted, frontier.Admitted, frontier.Admitted, frontier.Admitted)
	v := k.visitURLs("a.example", 1)
	same(k, "the last of an origin", of(v), "u:2")
	k.advance(claimed)
	same(k, "of another site", k.visitURLs("b.example", 1).Credentials, "")
	sameList(k, "a known one", k.admit(seed("p0", "u:%0A%20p")), frontier.Seen)
	k.finish(v)
	k.advance(claimed)
	v = k.visitURLs("a.example", 1)
	same(k, "brought by a known one", of(v), "u:%0A%20p")

	for i := range frontier.CredentialOrigins {
		c := seed(fmt.Sprint("q", i), "x")
		c.URL = fmt.Sprintf("http://a.example:%d/q%d", 1+i, i)
		want := frontier.Admitted
		if i == frontier.CredentialOrigins-1 {
			want = frontier.Capped
		}
		sameList(k, c.URL, k.admit(c), want)
	}
	sameList(k, "a kept origin when there is no room", k.admit(seed("p3", "u:3")), frontier.Admitted)
	k.finish(v)
	k.advance(claimed)
	v = k.visitURLs("a.example", 1)
	same(k, "origins", strings.Count(v.Credentials, "\n"), frontier.CredentialOrigins)
	same(k, "replaced", of(v), "u:3")
	same(k, "of one port", frontier.CredentialsFor(v.Credentials, "http://a.example:1"), "x")
	same(k, "of another scheme", frontier.CredentialsFor(v.Credentials, "http://a.example"), "")
	state, err := k.f.SiteStates(k.ctx, k.shard("a.example"), []string{"a.example"})
	k.must(err)
	same(k, "as reported", state[0].Credentials, v.Credentials)

	none := ""
	k.alter("a.example", frontier.SiteChange{Credentials: &none})
	k.finish(v)
	k.advance(claimed)
	same(k, "removed", k.visitURLs("a.example", 1).Credentials, "")
}
