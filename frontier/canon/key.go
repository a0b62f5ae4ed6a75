package canon

import (
	"bytes"
	"slices"
)

// The key is the fetch form with these changes, which never change what a
// server is asked for:
//
//   - credentials are dropped;
//   - in path and query, hexadecimal digits of escapes are upper case;
//   - escapes of unreserved characters (RFC 3986: letters, digits, "-._~") are
//     decoded, unless the decoded character would complete another escape: of
//     "/%2%35" the 5 stays escaped, since "/%25" is another URL.
//
// Segments that escapes would turn into "." or ".." cannot occur: parsing has
// resolved them. Two more rules are opt-in, since they are guesses about the
// site: dropping tracking parameters and session ids, and sorting the query.

// plainKey says that the key is the fetch form as it is.
func (u *URL) plainKey() bool {
	if u.flags&hasPercent != 0 || u.host != u.auth {
		return false
	}
	if u.flags&stripParams != 0 && mayHoldSession(u.buf[u.path:u.query]) {
		return false
	}
	return u.flags&(stripParams|sortQuery) == 0 || u.query == len(u.buf)
}

// appendKey appends the key of u.
func (u *URL) appendKey(dst []byte) []byte {
	dst = append(dst, u.buf[:u.auth]...)
	dst = append(dst, u.buf[u.host:u.path]...)
	path := len(dst)
	dst = appendDecoded(dst, u.buf[u.path:u.query])
	if u.flags&stripParams != 0 {
		dst = stripSessions(dst, path)
	}
	if u.query == len(u.buf) {
		return dst
	}
	mark := len(dst)
	dst = appendDecoded(dst, u.buf[u.query:])
	if u.flags&(stripParams|sortQuery) == 0 || len(dst) == mark+1 {
		return dst
	}
	return arrange(dst, mark, u.flags)
}

// appendDecoded appends s with its escapes in key form.
func appendDecoded(dst, s []byte) []byte {
	stray := -2 // where in dst a '%' that starts no escape last stood
	for {
		i := bytes.IndexByte(s, '%')
		if i < 0 {
			return append(dst, s...)
		}
		dst = append(dst, s[:i]...)
		s = s[i:]
		if len(s) < 3 || unhex[s[1]] > 15 || unhex[s[2]] > 15 {
			stray = len(dst)
			dst = append(dst, '%')
			s = s[1:]
			continue
		}
		c := unhex[s[1]]<<4 | unhex[s[2]]
		n := len(dst)
		completes := unhex[c] <= 15 && (stray == n-1 || stray == n-2 && unhex[dst[n-1]] <= 15)
		if class[c]&unreserved != 0 && !completes {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		}
		s = s[3:]
	}
}

// arrange applies the opt-in rules to the query that stands in b from its '?'
// at q on. It allocates only for more parameters than most guards let pass.
func arrange(b []byte, q int, rules flag) []byte {
	var list [DefaultMaxArgs]span
	pairs := list[:0]
	id, token := false, false // of ColdFusion
	for from, end := q+1, len(b); from <= end; {
		to := end
		if n := bytes.IndexByte(b[from:end], '&'); n >= 0 {
			to = from + n
		}
		is := noSession
		if rules&stripParams != 0 {
			if is = sessionOf(b[from:to]); tracks(nameOf(b[from:to])) {
				is = wholeSession
			}
		}
		id, token = id || is == coldFusionID, token || is == coldFusionToken
		if is != wholeSession {
			pairs = append(pairs, span{from, to})
		}
		from = to + 1
	}
	if id && token {
		pairs = slices.DeleteFunc(pairs, func(p span) bool { return sessionOf(b[p.from:p.to]) != noSession })
	}
	if len(pairs) == 0 {
		return b[:q]
	}
	if rules&sortQuery != 0 {
		slices.SortStableFunc(pairs, func(x, y span) int { return bytes.Compare(nameOf(b[x.from:x.to]), nameOf(b[y.from:y.to])) })
	}
	end := len(b) // written behind, then moved
	for i, p := range pairs {
		if i > 0 {
			b = append(b, '&')
		}
		b = append(b, b[p.from:p.to]...)
	}
	return append(b[:q+1], b[end:]...)
}

// span is a parameter's place in the query.
type span struct{ from, to int }

// nameOf returns the name of a query parameter as escaped in the key.
func nameOf(pair []byte) []byte {
	name, _, _ := bytes.Cut(pair, []byte{'='})
	return name
}

// tracks says whether a parameter of this name serves to track visitors and
// never chooses the page. Names are compared without regard to case.
//
// The list: utm_* (everyone), gclid gclsrc dclid gbraid wbraid srsltid _ga _gl
// (Google), fbclid igshid (Meta), msclkid (Microsoft), yclid ysclid (Yandex),
// twclid (X), ttclid (TikTok), li_fat_id (LinkedIn), epik (Pinterest), mc_cid
// mc_eid (Mailchimp), _hsenc _hsmi hsctatracking (HubSpot), mkt_tok (Marketo),
// vero_id, wickedid, oly_anon_id oly_enc_id, rb_clickid, s_cid.
func tracks(name []byte) bool {
	var low [16]byte // longer than any name of the list
	switch string(appendLower(low[:0], name)) {
	case "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "srsltid", "_ga", "_gl",
		"fbclid", "igshid", "msclkid", "yclid", "ysclid", "twclid", "ttclid", "li_fat_id", "epik",
		"mc_cid", "mc_eid", "_hsenc", "_hsmi", "hsctatracking", "mkt_tok",
		"vero_id", "wickedid", "oly_anon_id", "oly_enc_id", "rb_clickid", "s_cid":
		return true
	}
	return bytes.HasPrefix(low[:], []byte("utm_"))
}

// appendLower appends the start of name, as far as there is room, in lower case.
func appendLower(dst, name []byte) []byte {
	for _, c := range name[:min(len(name), cap(dst)-len(dst))] {
		if class[c]&upper != 0 {
			c |= 0x20
		}
		dst = append(dst, c)
	}
	return dst
}
