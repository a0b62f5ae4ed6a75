package fields

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/andybalholm/cascadia"
	"github.com/itlightning/dateparse"
	"golang.org/x/net/html"
)

var errPath = errors.New("jsonld must be keys joined by dots, with Type/ in front or not, such as Product/offers.price")

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// from says where a rule looks.
func (r *rule) from() string {
	switch {
	case r.CSS != "" && r.Attr != "":
		return "css " + r.CSS + ", attribute " + r.Attr
	case r.CSS != "" && r.HTML:
		return "css " + r.CSS + ", html"
	case r.CSS != "":
		return "css " + r.CSS
	case r.Meta != "":
		return "meta " + r.Meta
	case r.JSONLD != "":
		return "jsonld " + r.JSONLD
	case r.OpenGraph != "":
		return "opengraph " + r.OpenGraph
	}
	return "text " + r.Text
}

// values are what the rule makes of the page: one, or with All as many as there
// are. An error tells of the last text that it found and that is no value.
func (r *rule) values(p *Page) (values []any, err error) {
	room := p.MaxText
	for _, text := range r.texts(p) {
		p.truncated = p.truncated || len(text) > p.MaxText // the values may be behind that
		for _, t := range r.cut(text) {
			if t = strings.TrimSpace(t); t == "" {
				continue
			}
			p.truncated = p.truncated || len(t) > room
			if t = clip(t, room); t == "" {
				return values, err
			}
			room -= len(t)
			v, fault := r.value(p, t)
			if fault != nil {
				err = fault
				continue
			}
			if values = append(values, v); !r.All || len(values) == MaxValues {
				return values, err
			}
		}
	}
	return values, err
}

// texts are what stands where the rule looks.
func (r *rule) texts(p *Page) (found []string) {
	switch {
	case r.CSS != "":
		for _, n := range cascadia.QueryAll(p.Tree, r.css) {
			switch {
			case r.Attr != "":
				found = append(found, attr(n, strings.ToLower(r.Attr)))
			case r.HTML:
				found = append(found, inner(n, p.MaxText))
			default:
				found = append(found, textOf(n, p.MaxText))
			}
		}
	case r.Meta != "":
		found = p.metas(r.Meta, "name", "property", "itemprop")
	case r.OpenGraph != "":
		found = p.metas("og:"+strings.TrimPrefix(r.OpenGraph, "og:"), "property", "name")
	case r.JSONLD != "":
		for _, v := range p.linkedData() {
			found = r.path.find(found, v)
		}
	case r.Text == "main":
		found = []string{p.Main()}
	default:
		found = []string{p.Whole()}
	}
	return found
}

// inner is the markup inside an element, up to a little more than so many bytes where
// an element ends.
func inner(n *html.Node, most int) string {
	var b strings.Builder
	for c := n.FirstChild; c != nil && b.Len() <= most; c = c.NextSibling {
		if html.Render(&b, c) != nil {
			break
		}
	}
	return b.String()
}

// cut takes what the regular expression matches.
func (r *rule) cut(text string) []string {
	if r.regex == nil {
		return []string{text}
	}
	n := 1
	if r.All {
		n = MaxValues
	}
	var found []string
	for _, m := range r.regex.FindAllStringSubmatch(text, n) {
		found = append(found, m[min(1, len(m)-1)])
	}
	return found
}

// clip bounds a value at a whole character.
func clip(s string, most int) string {
	if len(s) <= most {
		return strings.Clone(s)
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return strings.Clone(s[:most])
}

// value makes a text what the rule's type says.
func (r *rule) value(p *Page, text string) (any, error) {
	switch r.Type {
	case "number":
		return number(text, r.Decimal == ",")
	case "time":
		t, err := dateparse.ParseStrict(text)
		if err != nil {
			return nil, fmt.Errorf("%q is no time, or month and day may be taken for each other", shown(text))
		}
		return t.Format(time.RFC3339Nano), nil
	case "url":
		if u := p.resolve(text); u != "" {
			return u, nil
		}
		return nil, fmt.Errorf("%q is no http or https URL", shown(text))
	case "bool":
		switch strings.ToLower(text) {
		case "true", "yes", "on", "1":
			return true, nil
		case "false", "no", "off", "0":
			return false, nil
		}
		return nil, fmt.Errorf("%q is none of true, yes, on, 1, false, no, off, 0", shown(text))
	}
	return text, nil
}

// number reads the first number in a text, such as a price: digits in groups
// parted by a comma, point, apostrophe or space, whichever is not the decimal
// sign.
func number(text string, comma bool) (any, error) {
	decimal, group := '.', ','
	if comma {
		decimal, group = ',', '.'
	}
	start := strings.IndexAny(text, "0123456789")
	if start < 0 {
		return nil, fmt.Errorf("%q holds no number", shown(text))
	}
	var b strings.Builder
	if before := strings.TrimRight(text[:start], " \u00a0$€£¥"); strings.HasSuffix(before, "-") || strings.HasSuffix(before, "\u2212") {
		b.WriteByte('-')
	}
	fraction := false
	rest := []rune(text[start:])
	digit := func(i int) bool { return i < len(rest) && rest[i] >= '0' && rest[i] <= '9' }
loop:
	for i, c := range rest {
		switch {
		case digit(i):
			b.WriteRune(c)
		case c == decimal && !fraction && digit(i+1):
			fraction = true
			b.WriteByte('.')
		case fraction || !digit(i+1) || !digit(i+2) || !digit(i+3) || digit(i+4):
			break loop
		case c == group || c == ' ' || c == '\u00a0' || c == '\u202f' || c == '\u2009' || c == '\'' || c == '\u2019':
		default:
			break loop
		}
	}
	n := b.String()
	if sign, digits := strings.TrimPrefix(n, "-"), strings.TrimLeft(strings.TrimPrefix(n, "-"), "0"); digits != sign { // JSON has no leading zeros
		if digits == "" || digits[0] == '.' {
			digits = "0" + digits
		}
		n = strings.TrimSuffix(n, sign) + digits
	}
	if _, err := strconv.ParseFloat(n, 64); err != nil {
		return nil, fmt.Errorf("%q is too large a number", shown(text))
	}
	return json.Number(n), nil
}

// shown is a text short enough for an error.
func shown(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
