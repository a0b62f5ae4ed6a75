// Package fields makes values out of pages by rules, without code.
//
// A Rule says where a value stands (a CSS selector, a meta element, a path in
// JSON-LD, an Open Graph property, the text), what of it is wanted, and which
// type it has. Compile turns Rules into a Set, once; For picks those of a
// site; Apply makes a Result of a Page:
//
//	Rules -> Compile -> Set -> For(site, host) -> Rules of the site -> Apply(Page) -> Result
//
// Rules of one name are tried in order, and the first that finds a value gives
// it. A site that no rule names costs a few look-ups and nothing else: its
// pages need not be kept, nor made into a tree.
//
// A Set is safe for concurrent use. A Page is not, and its tree may be shared
// with others that do not change it. Values share no memory with the page.
package fields

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/andybalholm/cascadia"
)

// Rule says where a field stands and what it is. Exactly one of CSS, Meta,
// JSONLD, OpenGraph and Text says where.
type Rule struct {
	At   string `yaml:"-"` // where the rule is written, such as "seine.yaml:12", for errors
	Name string // of the field
	Site string // site or host, or *.domain, that it is for; "" for all

	CSS       string // selector; the text of what it finds, unless Attr or HTML is given
	Attr      string // with CSS: an attribute's value
	HTML      bool   // with CSS: the markup inside
	Meta      string // name, property or itemprop of a meta element
	JSONLD    string // keys joined by dots, numbers for elements of lists; Type/ in front of them for objects of that @type
	OpenGraph string // property without og:
	Text      string // "whole" or "main": the page's text, or that of its article

	Regex    string // the first group of its match, or all of the match
	Type     string // text, number, time, url or bool; default text
	Decimal  string // of numbers: "." or ","; default "."
	All      bool   // all values, as a list, instead of the first
	Required bool   // a page without it is counted, and named by Result.Missing
}

// MaxValues is how many values of a rule with All are kept of a page.
const MaxValues = 1000

// Set is rules ready for use.
type Set struct {
	rules   []*rule
	general bool            // a rule is for all sites
	domains map[string]bool // that rules are for
}

// rule is a Rule ready for use, with what became of it so far.
type rule struct {
	Rule
	css           cascadia.SelectorGroup
	regex         *regexp.Regexp
	path          path
	found, failed atomic.Uint64
	missing       atomic.Uint64
}

// Compile makes a Set of rules, or says everything that is wrong with them.
func Compile(rules []Rule) (*Set, error) {
	s := &Set{domains: make(map[string]bool)}
	var faults []error
	for _, r := range rules {
		c := &rule{Rule: r}
		if err := c.compile(); err != nil {
			at := r.At
			if at != "" {
				at += ": "
			}
			faults = append(faults, fmt.Errorf("fields: %srule of %q: %w", at, r.Name, err))
		}
		s.rules = append(s.rules, c)
		s.general = s.general || r.Site == ""
		s.domains[strings.TrimPrefix(r.Site, "*.")] = true
	}
	return s, errors.Join(faults...)
}

func (r *rule) compile() (err error) {
	if r.Name == "" || len(r.Name) > 100 {
		return errors.New("name must have 1 to 100 bytes")
	}
	if domain := strings.TrimPrefix(r.Site, "*."); r.Site != "" && (domain == "" || strings.ContainsAny(domain, "*/ \t")) {
		return fmt.Errorf("site is %q, must be a host or *.domain", r.Site)
	}
	given := 0
	for _, where := range []string{r.CSS, r.Meta, r.JSONLD, r.OpenGraph, r.Text} {
		if where != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return errors.New("say one of css, meta, jsonld, opengraph and text")
	case r.CSS == "" && (r.Attr != "" || r.HTML):
		return errors.New("attr and html go with css")
	case r.Attr != "" && r.HTML:
		return errors.New("say attr or html, not both")
	case r.Text != "" && r.Text != "whole" && r.Text != "main":
		return fmt.Errorf("text is %q, must be whole or main", r.Text)
	}
	switch r.Type {
	case "", "text", "number", "time", "url", "bool":
	default:
		return fmt.Errorf("type is %q, must be text, number, time, url or bool", r.Type)
	}
	if r.Decimal != "" && (r.Type != "number" || r.Decimal != "." && r.Decimal != ",") {
		return fmt.Errorf("decimal is %q; it must be . or , and goes with type: number", r.Decimal)
	}
	if r.CSS != "" {
		if r.css, err = cascadia.ParseGroup(r.CSS); err != nil {
			return fmt.Errorf("css %q: %w", r.CSS, err)
		}
	}
	if r.JSONLD != "" {
		if r.path, err = parsePath(r.JSONLD); err != nil {
			return err
		}
	}
	if r.Regex != "" {
		if r.regex, err = regexp.Compile(r.Regex); err != nil {
			return fmt.Errorf("regex: %w", err)
		}
	}
	return nil
}

// Count is what a rule made of the pages so far.
type Count struct {
	Name, Site, At string
	Found          uint64 // pages that it found a value on
	Failed         uint64 // pages where what it found was not of its type
	Missing        uint64 // pages without the field, if it is required
}

// Counts says what became of each rule, in order.
func (s *Set) Counts() []Count {
	if s == nil {
		return nil
	}
	all := make([]Count, len(s.rules))
	for i, r := range s.rules {
		all[i] = Count{r.Name, r.Site, r.At, r.found.Load(), r.failed.Load(), r.missing.Load()}
	}
	return all
}

// Rules are those of a Set that are for one site.
type Rules []*rule

// For returns the rules for a page, nil when there are none: it then allocates
// nothing. A nil Set has none.
func (s *Set) For(site, host string) Rules {
	if s == nil || !s.general && !s.concerns(site) && !s.concerns(host) {
		return nil
	}
	var own Rules
	for _, r := range s.rules {
		if r.Site == "" || matches(r.Site, site) || matches(r.Site, host) {
			own = append(own, r)
		}
	}
	return own
}

// concerns reports whether a rule may be for a host: without it, the cost of For
// would grow with the rules of other sites.
func (s *Set) concerns(host string) bool {
	for !s.domains[host] {
		_, rest, ok := strings.Cut(host, ".")
		if !ok {
			return false
		}
		host = rest
	}
	return true
}

func matches(pattern, host string) bool {
	domain, wild := strings.CutPrefix(pattern, "*.")
	if host == domain {
		return true
	}
	return wild && len(host) > len(domain) && strings.HasSuffix(host, domain) && host[len(host)-len(domain)-1] == '.'
}

// Result is what rules made of a page.
type Result struct {
	Fields    []Field
	Missing   []string // names of required fields without a value
	Truncated bool     // a value was cut, or left out, at Page.MaxText
	Tried     []Trial  // each rule in order, with Explain only
}

// Field is a field with its value: a string, a json.Number, a bool, or with All
// a []any of them.
type Field struct {
	Name  string
	Value any
}

// Trial is what one rule found.
type Trial struct {
	Name   string `json:"name"`
	At     string `json:"at,omitempty"`
	From   string `json:"from"`
	Values []any  `json:"values,omitempty"`
	Error  string `json:"error,omitempty"` // why something that it found is no value
}

// Apply makes the fields of a page, and counts.
func (rs Rules) Apply(p *Page) Result { return rs.apply(p, false) }

// Explain is Apply that tries every rule, returns what it made of the page, and
// does not count.
func (rs Rules) Explain(p *Page) Result { return rs.apply(p, true) }

func (rs Rules) apply(p *Page, explain bool) Result {
	var out Result
	have := make(map[string]bool, len(rs))
	for _, r := range rs {
		if have[r.Name] && !explain {
			continue
		}
		values, err := r.values(p)
		if explain {
			t := Trial{Name: r.Name, At: r.At, From: r.from(), Values: values}
			if err != nil {
				t.Error = err.Error()
			}
			out.Tried = append(out.Tried, t)
		}
		if len(values) > 0 && !have[r.Name] {
			have[r.Name] = true
			f := Field{r.Name, values[0]}
			if r.All {
				f.Value = values
			}
			out.Fields = append(out.Fields, f)
		}
		if !explain {
			r.count(len(values) > 0, err != nil)
		}
	}
	out.Truncated = p.truncated
	named := make(map[string]bool)
	for _, r := range rs {
		if !r.Required || have[r.Name] {
			continue
		}
		if !explain {
			r.missing.Add(1)
		}
		if !named[r.Name] {
			named[r.Name] = true
			out.Missing = append(out.Missing, r.Name)
		}
	}
	return out
}

func (r *rule) count(found, failed bool) {
	switch {
	case found:
		r.found.Add(1)
	case failed:
		r.failed.Add(1)
	}
}

// AppendJSON appends the fields as a JSON object, in the order of their rules;
// nothing when there are none.
func (r *Result) AppendJSON(dst []byte) []byte {
	if len(r.Fields) == 0 {
		return dst
	}
	for i, f := range r.Fields {
		sep := byte(',')
		if i == 0 {
			sep = '{'
		}
		dst = append(dst, sep)
		dst = appendValue(dst, f.Name)
		dst = append(dst, ':')
		dst = appendValue(dst, f.Value)
	}
	return append(dst, '}')
}

func appendValue(dst []byte, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil { // strings, numbers, bools and lists of them always have a form
		return append(dst, "null"...)
	}
	return append(dst, b...)
}
