package preference

import (
	"bytes"
	"strings"
	"time"

	"seine/extract/charset"
)

// addRobots adds a list of robots directives, separated by commas or white space; of
// several lists the strictest counts, so "all" and "index" lift nothing. What stands
// behind a colon is a value: "max-image-preview: none" is not "none". A date may hold
// commas, so it is looked for in whole, which begins with list.
func (s *Set) addRobots(p Place, list, whole []byte) {
	valued := "" // directive whose value comes next
	for len(list) > 0 {
		n := 0
		for n < len(list) && list[n] != ',' && list[n] != ';' && !charset.IsSpace(list[n]) {
			n++
		}
		if n > 0 {
			valued = s.addDirective(p, valued, list[:n], whole)
		}
		n = min(n+1, len(list))
		list, whole = list[n:], whole[n:]
	}
}

// addDirective adds one directive, or the value of valued. It returns the directive whose
// value comes next, "" for none.
func (s *Set) addDirective(p Place, valued string, text, whole []byte) string {
	var room [32]byte
	if len(text) > len(room) {
		return ""
	}
	word := string(lower(room[:0], text))
	if i := strings.IndexByte(word, ':'); i >= 0 && valued == "" {
		if valued, word = word[:i], word[i+1:]; !isValued(valued) && valued != "" {
			return "" // "other: noindex" in a page is a noindex
		}
		whole = whole[i+1:]
		if valued == "" { // a colon that stands alone belongs to the word before
			valued = unnamed
		}
	}
	switch valued {
	case "":
		s.NoIndex = s.NoIndex || word == "noindex" || word == "none"
		s.NoFollow = s.NoFollow || word == "nofollow" || word == "none"
		if w := wordOf(robots, word); w >= 0 && !isValued(word) {
			s.add(p, w)
		}
		return ""
	case "unavailable_after":
		if t, ok := dateIn(whole); ok && time.Now().After(t) {
			s.add(p, wordOf(robots, valued))
		}
	case "max-snippet":
		if word == "0" {
			s.add(p, wordOf(robots, "max-snippet:0"))
		}
	}
	if word == "" {
		return valued
	}
	return ""
}

// unnamed is a directive that is unknown and has a value.
const unnamed = "?"

// addRobotsHeader adds one X-Robots-Tag value: "[agent:] directive, ...", where an agent's
// name may stand before any of the directives and holds from there on. Directives of
// other agents are not ours.
func (s *Set) addRobotsHeader(v, own string) {
	ours := true
	for rest := []byte(v); len(rest) > 0; {
		end := bytes.IndexByte(rest, ',')
		if end < 0 {
			end = len(rest)
		}
		from := 0
		for from < end && charset.IsSpace(rest[from]) {
			from++
		}
		part := rest[from:end]
		if i := bytes.IndexByte(part, ':'); i >= 0 {
			if agent := bytes.TrimRight(part[:i], " \t"); isAgent(agent) {
				ours = charset.EqualFold(agent, "*") || charset.EqualFold(agent, "robots") || own != "" && charset.EqualFold(agent, own)
				from += i + 1
			}
		}
		if ours {
			s.addRobots(RobotsHeader, rest[from:end], rest[from:])
		}
		rest = rest[min(end+1, len(rest)):]
	}
}

// isAgent reports whether what stands before a colon may be an agent's name. The rest of a
// date with a time has white space.
func isAgent(b []byte) bool {
	var room [32]byte
	return (len(b) > len(room) || !isValued(string(lower(room[:0], b)))) && !bytes.ContainsAny(b, " \t")
}

// isValued reports whether a directive is one that takes a value after a colon.
func isValued(word string) bool {
	switch word {
	case "unavailable_after", "max-snippet", "max-image-preview", "max-video-preview":
		return true
	}
	return false
}

// dateForms are the forms of dates of unavailable_after: RFC 822, RFC 850 and ISO 8601,
// with what pages make of them.
var dateForms = [...]string{
	time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.DateOnly, time.RFC1123, time.RFC1123Z, time.RFC850, time.RFC822, time.RFC822Z,
	"02 Jan 2006 15:04:05 MST", "2 Jan 2006 15:04:05 MST", "02-Jan-2006 15:04:05 MST", "02-Jan-06 15:04:05 MST", "02 Jan 2006", "Mon, 02-Jan-2006 15:04:05 MST",
}

// dateIn finds the date that b begins with, up to its first comma or its second.
func dateIn(b []byte) (t time.Time, ok bool) {
	for end := 0; ; end++ {
		n := bytes.IndexByte(b[end:], ',')
		if n < 0 {
			n = len(b) - end
		}
		text := strings.TrimSpace(string(b[:end+n]))
		for _, form := range dateForms {
			if t, err := time.Parse(form, text); err == nil {
				return t, true
			}
		}
		if end += n; end >= len(b) || end > 64 {
			return t, false
		}
	}
}

// lower appends ASCII in lower case.
func lower(dst, b []byte) []byte {
	for _, c := range b {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		dst = append(dst, c)
	}
	return dst
}
