package preference

import (
	"encoding/json"
	"strings"
)

// usageKeys are the categories of draft-ietf-aipref-vocab-08, section 6.1.
var usageKeys = [...]string{"search", "ai-use", "train-ai"}

// addUsage adds a statement of preference: a Dictionary of RFC 9651, whose members are the
// categories and whose values are the tokens y and n (draft-ietf-aipref-vocab-08, section
// 6.5). One that does not parse says nothing.
func (s *Set) addUsage(p Place, text string) {
	var values [len(usageKeys)]string
	d := dictionary{rest: strings.TrimSpace(text)}
	for d.next() {
		for i, key := range usageKeys {
			if d.key == key {
				values[i] = d.token // the last one of a key counts
			}
		}
	}
	if d.bad {
		return
	}
	for i, v := range values {
		if w := wordOf(contentUsage, usageKeys[i]+"="+v); v != "" && w >= 0 {
			s.add(p, w)
		}
	}
}

// addSignal adds a Content-Signal: members such as ai-train=no, parted by commas. No
// document has a grammar of it, so case and white space do not count.
func (s *Set) addSignal(text string) {
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		word := strings.ToLower(strings.TrimSpace(name) + "=" + strings.TrimSpace(value))
		if w := wordOf(contentSignal, word); w >= 0 {
			s.add(SignalRule, w)
		}
	}
}

// addReservation adds a tdm-reservation. Any other value than 0 and 1 counts as none
// (TDMRep, section 5.1).
func (s *Set) addReservation(p Place, value string) {
	if w := wordOf(tdmrep, "tdm-reservation="+strings.TrimSpace(value)); w >= 0 {
		s.add(p, w)
	}
}

// addPolicy adds a tdm-policy.
func (s *Set) addPolicy(address string) {
	if address = strings.TrimSpace(address); address != "" && len(address) <= maxAddress {
		s.TDMPolicy = address
	}
}

// TDMPath is where an origin has its TDM file.
const TDMPath = "/.well-known/tdmrep.json"

// TDMRule is a rule of a TDM file. The first one whose location matches a path counts
// (TDMRep, section 6.2); Value is one of AddRule.
type TDMRule struct {
	Location string // a pattern as of robots.txt
	Value    string
}

// ParseTDM reads the TDM file of an origin: an array of rules. What is none has no rules,
// and what is wrong in a rule is left out.
func ParseTDM(body []byte) (rules []TDMRule) {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) != nil {
		return nil
	}
	for _, raw := range list {
		var r struct {
			Location    string          `json:"location"`
			Reservation json.RawMessage `json:"tdm-reservation"`
			Policy      json.RawMessage `json:"tdm-policy"`
		}
		if json.Unmarshal(raw, &r) != nil || r.Location == "" {
			continue
		}
		var policy string
		if string(r.Reservation) == "1" { // of rights that are not reserved none is processed
			json.Unmarshal(r.Policy, &policy) //nolint:errcheck // then there is none
		}
		rules = append(rules, TDMRule{r.Location, strings.TrimSpace(string(r.Reservation) + " " + policy)})
	}
	return rules
}
