package fields

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/andybalholm/cascadia"
	"github.com/itlightning/dateparse"
	"golang.org/x/net/html"
)

var errPath = errors.New("jsonld must be keys joined by dots, with Type/ in front or not, such as Product/offers.price")

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
// are. An error names the last text that it found and that is no value.
func (r *rule) values(p *Page) (values []any, err error) {
	room := p.MaxText
	for _, found := range r.texts(p) {
		p.truncated = p.truncated || len(found.string) > p.MaxText // the values may be behind that
		for _, t := range r.cut(found.string) {
			if t = strings.TrimSpace(t); t == "" {
				continue
			}
			p.truncated = p.truncated || len(t) > room
			if t = clip(t, room); t == "" {
				return values, err
			}
			room -= len(t)
			v, fault := r.value(p, text{t, found.number && r.regex == nil})
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
func (r *rule) texts(p *Page) []text {
	var found []string
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
		var values []text
		for _, v := range p.linkedData() {
			values = r.path.find(values, v)
		}
		return values
	case r.Text == "main":
		found = []string{p.Main()}
	default:
		found = []string{p.Whole()}
	}
	all := make([]text, len(found))
	for i, s := range found {
		all[i].string = s
	}
	return all
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
func (r *rule) value(p *Page, t text) (any, error) {
	text := t.string
	switch r.Type {
	case "number":
		if t.number {
			return plainNumber(text)
		}
		return number(text, r.Decimal == ",")
	case "time":
		t, err := dateparse.ParseStrict(text)
		if err != nil {
			return nil, fmt.Errorf("%q is no time, or month and day may be taken for each other", excerpt(text))
		}
		return t.Format(time.RFC3339Nano), nil
	case "url":
		if u := p.resolve(text); u != "" {
			return u, nil
		}
		return nil, fmt.Errorf("%q is no http or https URL", excerpt(text))
	case "bool":
		switch strings.ToLower(text) {
		case "true", "yes", "on", "1":
			return true, nil
		case "false", "no", "off", "0":
			return false, nil
		}
		return nil, fmt.Errorf("%q is none of true, yes, on, 1, false, no, off, 0", excerpt(text))
	}
	return text, nil
}

// numberRun is digits with what may stand between them.
var numberRun = regexp.MustCompile("[.,]?[0-9](?:[.,' \u00a0\u202f\u2009\u2019]?[0-9])*")

// wholeNumbers are what a run must be, by the decimal sign: groups of three digits may
// be parted by the other sign, an apostrophe or a space.
var wholeNumbers = map[bool]*regexp.Regexp{
	false: regexp.MustCompile("^(?:[0-9]*|[0-9]{1,3}(?:[,' \u00a0\u202f\u2009\u2019][0-9]{3})+)(?:[.][0-9]+)?$"),
	true:  regexp.MustCompile("^(?:[0-9]*|[0-9]{1,3}(?:[.' \u00a0\u202f\u2009\u2019][0-9]{3})+)(?:,[0-9]+)?$"),
}

// number reads the first number in a text, such as a price. It must be one as a whole:
// 12,50 is none where the decimal sign is a point.
func number(text string, comma bool) (any, error) {
	if !comma && jsonNumber.MatchString(text) {
		return plainNumber(text)
	}
	at := numberRun.FindStringIndex(text)
	if at == nil {
		return nil, fmt.Errorf("%q holds no number", excerpt(text))
	}
	run := text[at[0]:at[1]]
	if !wholeNumbers[comma].MatchString(run) {
		sign := "point"
		if comma {
			sign = "comma"
		}
		return nil, fmt.Errorf("%q in %q is no number whose decimal sign is a %s", run, excerpt(text), sign)
	}
	decimal := '.'
	if comma {
		decimal = ','
	}
	var b strings.Builder
	if before := strings.TrimRight(text[:at[0]], " \u00a0$€£¥"); strings.HasSuffix(before, "-") || strings.HasSuffix(before, "\u2212") {
		b.WriteByte('-')
	}
	for _, c := range run {
		switch {
		case c >= '0' && c <= '9':
			b.WriteRune(c)
		case c == decimal:
			b.WriteByte('.')
		}
	}
	n := b.String()
	if sign, digits := strings.TrimPrefix(n, "-"), strings.TrimLeft(strings.TrimPrefix(n, "-"), "0"); digits != sign || digits[0] == '.' { // JSON has no leading zeros, and one before a point
		if digits == "" || digits[0] == '.' {
			digits = "0" + digits
		}
		n = strings.TrimSuffix(n, sign) + digits
	}
	return plainNumber(n)
}

var jsonNumber = regexp.MustCompile(`^-?(?:0|[1-9][0-9]*)(?:[.][0-9]+)?(?:[eE][+-]?[0-9]+)?$`)

// plainNumber is a number of JSON, without an exponent.
func plainNumber(text string) (any, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is too large a number", excerpt(text))
	}
	if strings.ContainsAny(text, "eE") {
		text = strconv.FormatFloat(n, 'f', -1, 64)
	}
	return json.Number(text), nil
}

// excerpt is a text short enough for an error.
func excerpt(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
