package memory

import (
	"encoding/binary"
	"strings"

	"seine/frontier"
)

// The flags that start an encoded entry. Its class and its site are those of the
// list it stands in.
const (
	hasSeed = 1 << iota
	hasMeta
	hasMarks     // lost and attempts follow, one byte each
	hasRedirects // one byte follows
	hasForm      // times the index into forms
)

// forms are starts of URLs that an entry leaves out; its site comes after.
var forms = [4]string{"", "https://", "https://www.", "http://"}

// formOf finds what a form says of the URL, and the rest.
func formOf(site, url string) (form int, rest string) {
	for i := 1; i < len(forms) && site != ""; i++ {
		if rest, ok := strings.CutPrefix(url, forms[i]); ok {
			if rest, ok = strings.CutPrefix(rest, site); ok {
				return i, rest
			}
		}
	}
	return 0, url
}

// appendEntry appends e in its stored form: flags, marks, redirects, depth,
// meta, and the URL as the rest. site is that of its list, "" where it stands
// alone.
func appendEntry(dst []byte, site string, e *frontier.Entry) []byte {
	flags := len(dst)
	dst = append(dst, 0)
	if e.Seed {
		dst[flags] |= hasSeed
	}
	if e.Lost|e.Attempts != 0 {
		dst[flags] |= hasMarks
		dst = append(dst, e.Lost, e.Attempts)
	}
	if e.Redirects != 0 {
		dst[flags] |= hasRedirects
		dst = append(dst, e.Redirects)
	}
	dst = binary.AppendUvarint(dst, uint64(e.Depth))
	if e.Meta != "" {
		dst[flags] |= hasMeta
		dst = binary.AppendUvarint(dst, uint64(len(e.Meta)))
		dst = append(dst, e.Meta...)
	}
	form, url := formOf(site, e.URL)
	dst[flags] |= byte(form * hasForm)
	return append(dst, url...)
}

// entryLost is the lost mark of a stored entry.
func entryLost(rec []byte) uint8 {
	if rec[0]&hasMarks == 0 {
		return 0
	}
	return rec[1]
}

// decodeEntry is the entry that appendEntry stored; its strings are its own.
func decodeEntry(rec []byte, site string, class int) frontier.Entry {
	e := frontier.Entry{Priority: uint8(class), Seed: rec[0]&hasSeed != 0}
	flags, rest := rec[0], rec[1:]
	if flags&hasMarks != 0 {
		e.Lost, e.Attempts, rest = rest[0], rest[1], rest[2:]
	}
	if flags&hasRedirects != 0 {
		e.Redirects, rest = rest[0], rest[1:]
	}
	depth, n := binary.Uvarint(rest)
	e.Depth, rest = uint32(depth), rest[n:]
	if flags&hasMeta != 0 {
		size, n := binary.Uvarint(rest)
		rest = rest[n:]
		e.Meta, rest = string(rest[:size]), rest[size:]
	}
	if form := flags / hasForm % 4; form != 0 {
		e.URL = forms[form] + site + string(rest)
	} else {
		e.URL = string(rest)
	}
	return e
}

// entryOf is what a candidate leaves in a queue.
func entryOf(c *frontier.Candidate) frontier.Entry {
	return frontier.Entry{URL: c.URL, Priority: c.Priority, Depth: c.Depth, Redirects: c.Redirects, Seed: c.Seed, Meta: c.Meta}
}

// validEntry says whether rec can be decoded.
func validEntry(rec []byte) bool {
	r := reader{b: rec}
	flags := r.byte()
	if flags&hasMarks != 0 {
		r.take(2)
	}
	if flags&hasRedirects != 0 {
		r.byte()
	}
	r.uint()
	if flags&hasMeta != 0 {
		r.bytes()
	}
	return !r.bad
}
