// Package wall tells apart the answers that a protection service gave in place of a site's
// page: a challenge, a captcha, a refusal.
//
// A Rule names a vendor and the signs of its walls: statuses, headers, and marks in the
// first bytes of the decoded body. The table of this package has those that vendors
// document or public detectors agree on, each with its source; users add their own. A Set
// is rules compiled: one lookup for each header of an answer and one pass over the start
// of its body find every sign. A Verdict is the vendor, and how sure the sign is.
//
// A Set never changes and is safe for concurrent use. A Scratch is the memory of one worker.
package wall

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Bytes is how much of a decoded body is looked at, from its start.
const Bytes = 1 << 10

// Certainty is how sure a sign is.
type Certainty uint8

// The certainties, from the least.
const (
	None    Certainty = iota
	Hint              // a header names the vendor's server, in an answer that refuses
	Likely            // pages of a site's own may have the sign too
	Certain           // nothing but a wall has it
)

var certaintyNames = [...]string{None: "none", Hint: "hint", Likely: "likely", Certain: "certain"}

func (c Certainty) String() string { return certaintyNames[c] }

// UnmarshalText reads what a rule of a file may have.
func (c *Certainty) UnmarshalText(text []byte) error {
	at := slices.Index(certaintyNames[:], string(text))
	if at <= 0 {
		return fmt.Errorf("wall: sure is %q, must be certain, likely or hint", text)
	}
	*c = Certainty(at)
	return nil
}

// Rule is the signs of one kind of wall. An answer has all of them, and one of the
// statuses. The case of ASCII letters makes no difference.
type Rule struct {
	Vendor string    // small letters, digits, - and _
	Sure   Certainty // None is Likely
	Status []int     // none: any
	Header []string  // "name: text in its value"; without text the header is there
	Body   []string  // marks in the first Bytes
	Source string    `yaml:"-"` // where the vendor, or who, says so
	At     string    `yaml:"-"` // file and line of a user's rule
}

// The bounds of rules that users add.
const (
	mostRules  = 100
	mostSigns  = 8 // of one rule
	mostVendor = 32
	leastMark  = 8 // bytes: shorter marks are on any page, and slow to look for
	mostMark   = 200
)

// check says what is wrong with a rule.
func (r *Rule) check() error {
	other := func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_'
	}
	switch {
	case r.Vendor == "" || len(r.Vendor) > mostVendor || strings.ContainsFunc(r.Vendor, other):
		return fmt.Errorf("vendor is %q, must be up to %d small letters, digits, - and _", r.Vendor, mostVendor)
	case len(r.Header)+len(r.Body) == 0:
		return errors.New("there must be a header or a body mark")
	case len(r.Header)+len(r.Body) > mostSigns:
		return fmt.Errorf("there are more than %d signs", mostSigns)
	}
	for _, status := range r.Status {
		if status < 100 || status > 999 {
			return fmt.Errorf("status is %d, must be 100 to 999", status)
		}
	}
	for _, h := range r.Header {
		if name, _, _ := strings.Cut(h, ":"); strings.TrimSpace(name) == "" {
			return fmt.Errorf("header is %q, must be NAME: TEXT or NAME", h)
		}
	}
	for _, m := range r.Body {
		if len(m) < leastMark || len(m) > mostMark {
			return fmt.Errorf("body mark %q must have %d to %d bytes", m, leastMark, mostMark)
		}
	}
	return nil
}

// Verdict is what an answer is; the zero one is the site's own.
type Verdict struct {
	Vendor string
	Sure   Certainty
}

// Header is the header of an answer.
type Header interface {
	// Field is the i-th name and value; past the last one name is nil.
	Field(i int) (name, value []byte)
}

// Default is the table of this package alone.
func Default() *Set {
	s, err := Compile(nil)
	if err != nil {
		panic(err) // the table is constant
	}
	return s
}

// Compile adds rules to those of the table; among equally sure ones the added count first.
// It joins all faults, each with the At of its rule.
func Compile(rules []Rule) (*Set, error) {
	var faults []error
	if len(rules) > mostRules {
		faults = append(faults, fmt.Errorf("wall: there are %d rules, must be at most %d", len(rules), mostRules))
	}
	s := &Set{}
	for _, r := range slices.Concat(rules, table) {
		if err := r.check(); err != nil {
			faults = append(faults, fmt.Errorf("wall: %s: rule of %q: %w", r.At, r.Vendor, err))
			continue
		}
		s.addRule(&r)
	}
	s.marks.compile()
	return s, errors.Join(faults...)
}
