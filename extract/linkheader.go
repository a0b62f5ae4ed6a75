package extract

import "strings"

// headers hands on the links of Link and Refresh headers.
func (c *collector) headers(doc *Doc) {
	for _, v := range doc.Link {
		c.linkHeader(v)
	}
	for _, v := range doc.Refresh {
		c.link = Link{Priority: -1}
		if url, ok := refresh([]byte(v)); ok {
			c.send(Refresh, url)
		}
	}
}

// linkHeader hands on the links of one Link value (RFC 8288, section 3 and
// appendix B). Links of another context (anchor) are not this document's.
func (c *collector) linkHeader(v string) {
	for v != "" {
		i := strings.IndexByte(v, '<')
		if i < 0 {
			return
		}
		end := strings.IndexByte(v[i:], '>')
		if end < 0 {
			return
		}
		target := v[i+1 : i+end]
		p := linkParams{}
		v = p.parse(v[i+end+1:])
		if p.anchor {
			continue
		}
		c.link = Link{Rel: []byte(p.rel), Type: []byte(p.typ), Priority: -1}
		r := rels(c.link.Rel)
		c.link.NoFollow = r&relNoFollow != 0
		if r&relLicense != 0 {
			c.facts.Said.AddLicense(target, p.typ)
		}
		k := Header
		switch r.kind(c.link.Type) {
		case Stylesheet:
			k = Stylesheet
		case Icon:
			k = Icon
		case Preload:
			k = Preload
		case Canonical:
			if c.headerCanonical == "" {
				c.headerCanonical = target
			}
		case LinkOther:
			if tokens := strings.ToLower(p.rel); strings.Contains(tokens, "preconnect") || strings.Contains(tokens, "dns-prefetch") {
				k = LinkOther
			}
		}
		c.send(k, []byte(target))
	}
}

// linkParams are the parameters of one link that matter.
type linkParams struct {
	rel, typ string
	anchor   bool
	hasRel   bool
}

// parse reads parameters up to the comma that ends the link, and returns the rest.
func (p *linkParams) parse(v string) string {
	for {
		v = strings.TrimLeft(v, " \t;")
		if v == "" {
			return ""
		}
		if v[0] == ',' {
			return v[1:]
		}
		n := strings.IndexAny(v, "=;,")
		if n < 0 {
			return ""
		}
		name := strings.ToLower(strings.TrimSpace(v[:n]))
		if v[n] != '=' {
			v = v[n:]
			continue
		}
		var val string
		val, v = paramValue(strings.TrimLeft(v[n+1:], " \t"))
		switch {
		case name == "rel" && !p.hasRel: // the first counts (RFC 8288, 3.3)
			p.rel, p.hasRel = val, true
		case name == "type" && p.typ == "":
			p.typ = val
		case name == "anchor":
			p.anchor = true
		}
	}
}

// paramValue reads a token or a quoted string.
func paramValue(v string) (val, rest string) {
	if !strings.HasPrefix(v, `"`) {
		n := strings.IndexAny(v, ";,")
		if n < 0 {
			n = len(v)
		}
		return strings.TrimSpace(v[:n]), v[n:]
	}
	var b strings.Builder
	for i := 1; i < len(v); i++ {
		switch v[i] {
		case '"':
			return b.String(), v[i+1:]
		case '\\':
			if i++; i == len(v) {
				return b.String(), ""
			}
		}
		b.WriteByte(v[i])
	}
	return b.String(), ""
}
