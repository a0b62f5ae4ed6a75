// Package preference reads what a site wants done with its pages.
//
// Sites say it in many forms, each with words of its own: robots directives, the
// Content-Usage of IETF aipref, Content Signals, TDMRep, and links to licences. A parser
// for each form finds its words, and the one table (see table.go) says what a word means
// for each of five uses. A Set is the sum for one page.
//
// Between forms, and between the places of one form, no beats yes, and a word that is
// silent on a use changes nothing. TDMRep alone has an order of its own: a meta element
// counts before the header, and the header before the file of the origin. What is added
// to a Set later is therefore the more specific one: robots.txt and the file of the
// origin first, then the header, then the page.
//
// What does not parse says nothing. A Set has no memory of what it read, but for the
// addresses of licences.
package preference

import (
	"encoding/json"
	"fmt"
	"strings"

	"seine/extract/charset"
)

// Use is something that may be done with a page.
type Use uint8

const (
	Search  Use = iota // find it by a search, and link to it
	AIInput            // give it to a generative model as input
	AITrain            // train a generative model with it
	TDM                // mine it as text and data, as of article 4 of Directive (EU) 2019/790
	Archive            // keep a copy for others to see
	Uses
)

// String is the name of the use as records have it.
func (u Use) String() string {
	return [Uses]string{"search", "ai_input", "ai_train", "tdm", "archive"}[u]
}

// Purpose is a set of uses.
type Purpose uint8

// ParsePurpose reads names of uses as settings have them: as in records, or with a hyphen.
func ParsePurpose(names []string) (p Purpose, err error) {
next:
	for _, name := range names {
		for u := range Uses {
			if u.String() == strings.ReplaceAll(name, "-", "_") {
				p |= 1 << u
				continue next
			}
		}
		return 0, fmt.Errorf("preference: purpose %q is unknown: there are search, ai-input, ai-train, tdm and archive", name)
	}
	return p, nil
}

// Names are the uses of p as records have them.
func (p Purpose) Names() (names []string) {
	for u := range Uses {
		if p&(1<<u) != 0 {
			names = append(names, u.String())
		}
	}
	return names
}

// Answer is what a site says of a use.
type Answer uint8

const (
	Unsaid Answer = iota
	Yes
	No
)

// String is the answer as records have it, "" for Unsaid.
func (a Answer) String() string { return [...]string{"", "yes", "no"}[a] }

// Said is an answer and the word that gave it.
type Said struct {
	Answer
	place Place
	word  uint8 // in words
}

// By is where it was said, and the word: "X-Robots-Tag: noindex". It allocates.
func (s Said) By() string {
	if s.Answer == Unsaid {
		return ""
	}
	return placeNames[s.place] + ": " + words[s.word].word
}

// Set is what was said of one page. The zero value is of a page of which nothing was.
type Set struct {
	NoIndex  bool // robots directives have noindex
	NoFollow bool // robots directives have nofollow

	License   string // address of a licence as written
	RSL       string // address of a licence in RSL 1.0 as written: of the page, else of its site
	TDMPolicy string // address of a TDM policy as written

	said   [Uses]Said
	images bool // the page is an image
	ofSite bool // RSL is what robots.txt names
}

// Of is what was said of a use.
func (s *Set) Of(u Use) Said { return s.said[u] }

// IsEmpty reports whether nothing was said of any use, and no licence named.
func (s *Set) IsEmpty() bool {
	return s.said == [Uses]Said{} && s.License == "" && s.RSL == "" && s.TDMPolicy == ""
}

// Refused are the uses of p that the site refuses.
func (s *Set) Refused(p Purpose) (refused Purpose) {
	if p == 0 {
		return 0
	}
	for u := range Uses {
		if s.said[u].Answer == No {
			refused |= p & (1 << u)
		}
	}
	return refused
}

// Why is what refuses the first of some refused uses: "ai_train: X-Robots-Tag: noai".
func (s *Set) Why(refused Purpose) string {
	for u := range Uses {
		if refused&(1<<u) != 0 {
			return u.String() + ": " + s.said[u].By()
		}
	}
	return ""
}

// AppendJSON appends an object of what was said: of each use that is not Unsaid what the
// site says, and by which word where; and the addresses.
func (s *Set) AppendJSON(dst []byte) []byte {
	sep := byte('{')
	for u := range Uses {
		if said := s.said[u]; said.Answer != Unsaid {
			dst = append(append(append(dst, sep, '"'), u.String()...), `":{"says":"`...)
			dst = append(append(append(dst, said.Answer.String()...), `","by":"`...), placeNames[said.place]...)
			dst = append(append(append(dst, ": "...), words[said.word].word...), `"}`...)
			sep = ','
		}
	}
	for _, a := range [...]struct{ name, address string }{{"license", s.License}, {"rsl", s.RSL}, {"tdm_policy", s.TDMPolicy}} {
		if a.address != "" {
			text, _ := json.Marshal(a.address) //nolint:errcheck // a string always has a form
			dst = append(append(append(dst, sep, '"'), a.name...), `":`...)
			dst = append(dst, text...)
			sep = ','
		}
	}
	if sep == '{' {
		dst = append(dst, '{')
	}
	return append(dst, '}')
}

// add adds a word that stands at a place.
func (s *Set) add(p Place, w int) {
	for u, a := range words[w].says {
		had := s.said[u].Answer
		switch {
		case a == Unsaid, words[w].images && !s.images:
		case words[w].form == tdmrep, had == Unsaid, had == Yes && a == No:
			s.said[u] = Said{a, p, uint8(w)}
		}
	}
}

// Header is what AddHeader reads: all values of a name, in order.
type Header interface {
	Values(name string) []string
}

// AddHeader adds what the header of an answer says to a crawler of the name own; its body
// is read as contentType.
func (s *Set) AddHeader(h Header, own, contentType string) {
	s.images = strings.HasPrefix(contentType, "image/")
	for _, v := range h.Values("X-Robots-Tag") {
		s.addRobotsHeader(v, strings.ToLower(own))
	}
	if v := h.Values("Content-Usage"); v != nil {
		s.addUsage(UsageHeader, strings.Join(v, ", ")) // RFC 9651, section 4.2
	}
	if v := h.Values("TDM-Reservation"); v != nil {
		s.addReservation(TDMHeader, v[0])
	}
	if v := h.Values("TDM-Policy"); v != nil {
		s.addPolicy(v[0])
	}
}

// AddMeta adds a meta element. Of those that are named after a crawler only those of own,
// in lower case, count.
func (s *Set) AddMeta(name, content []byte, own string) {
	switch {
	case charset.EqualFold(name, "robots"), own != "" && charset.EqualFold(name, own):
		s.addRobots(RobotsMeta, content, content)
	case charset.EqualFold(name, "tdm-reservation"):
		s.addReservation(TDMMeta, string(content))
	case charset.EqualFold(name, "tdm-policy"):
		s.addPolicy(string(content))
	}
}

// AddRule adds what a robots.txt, or the TDM file of an origin, says of the page: value is
// that of a line with the label.
func (s *Set) AddRule(label, value string) {
	switch label {
	case LabelUsage:
		s.addUsage(UsageRule, value)
	case LabelSignal:
		s.addSignal(value)
	case LabelLicense:
		if s.RSL == "" && len(value) <= maxAddress {
			s.RSL, s.ofSite = value, true
		}
	case LabelTDM:
		reservation, policy, _ := strings.Cut(value, " ")
		s.addReservation(TDMFile, reservation)
		s.addPolicy(policy)
	}
}

// The labels of AddRule. The last one is of the TDM file: its value is a reservation, a
// blank and a policy.
const (
	LabelUsage   = "content-usage"
	LabelSignal  = "content-signal"
	LabelLicense = "license"
	LabelTDM     = "tdmrep"
)

const (
	rslType = "application/rsl+xml"
	// maxAddress is how long the address of a licence may be that is kept, bytes.
	maxAddress = 2 << 10
)

// AddLicense adds a link whose relation is license (RFC 4946; RSL 1.0, section 4). The
// first one of a page counts, and before that of its site.
func (s *Set) AddLicense(address, mediaType string) {
	address = strings.TrimSpace(address)
	if address == "" || len(address) > maxAddress {
		return
	}
	if mediaType, _, _ = strings.Cut(mediaType, ";"); strings.EqualFold(strings.TrimSpace(mediaType), rslType) {
		if s.RSL == "" || s.ofSite {
			s.RSL, s.ofSite = address, false
		}
	} else if s.License == "" {
		s.License = address
	}
}
