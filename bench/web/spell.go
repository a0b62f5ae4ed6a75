package web

import (
	"bytes"
	"strconv"
)

// appendSpelling appends a link's target as an attribute value in double
// quotes: every spelling resolves to the canonical URL.
func (w *Web) appendSpelling(dst []byte, d *dice, site, n int, l link) []byte {
	var mem [256]byte
	if w.cfg.Features&Spellings == 0 {
		if l.site != site {
			return w.appendAmp(dst, w.appendURL(mem[:0], l.site, l.kind, l.n, l.step))
		}
		return w.appendAmp(dst, w.appendPath(mem[:0], l.site, l.kind, l.n, l.step))
	}
	path := w.appendPath(mem[:0], l.site, l.kind, l.n, l.step)
	how := d.below(16)
	if l.site != site {
		return w.appendForeign(dst, l.site, path, how)
	}
	switch how {
	case 0:
		return append(w.appendAmp(dst, path), "#part-2"...)
	case 1:
		return w.appendForeign(dst, site, path, 0)
	case 2:
		return w.appendForeign(dst, site, path, 1)
	case 3:
		return w.appendForeign(dst, site, path, 2)
	case 4:
		return w.appendAmp(append(dst, "/no/such/../../dir/.."...), path)
	case 5:
		return append(w.appendAmp(append(dst, " \n"...), path), "\t "...)
	case 6:
		return w.appendEscaped(dst, path)
	case 7: // a backslash is a slash before the query
		i := bytes.IndexByte(path, '?')
		if i < 0 {
			i = len(path)
		}
		dst = append(dst, bytes.ReplaceAll(path[:i], []byte("/"), []byte(`\`))...)
		return w.appendAmp(dst, path[i:])
	case 8: // line feeds inside vanish
		half := len(path) / 2
		return w.appendAmp(append(w.appendAmp(dst, path[:half]), '\n'), path[half:])
	case 9: // character references
		return w.appendAmp(append(dst, "&#x2F;"...), path[1:])
	case 10:
		return append(dst, path...) // & as it is
	case 11, 12:
		return w.appendRelative(dst, site, n, path)
	}
	return w.appendAmp(dst, path)
}

// appendForeign appends a URL with its host.
func (w *Web) appendForeign(dst []byte, site int, path []byte, how int) []byte {
	scheme, host, port := w.cfg.Scheme+"://", w.Host(site), ""
	switch how {
	case 0:
		scheme = "//"
	case 1:
		host = string(bytes.ToUpper([]byte(host)))
		scheme = string(bytes.ToUpper([]byte(scheme)))
	case 2:
		port = ":80"
		if w.cfg.Scheme == "https" {
			port = ":443"
		}
	}
	dst = append(append(append(dst, scheme...), host...), port...)
	return w.appendAmp(dst, path)
}

// appendAmp appends s with & as a character reference.
func (*Web) appendAmp(dst, s []byte) []byte {
	for {
		i := bytes.IndexByte(s, '&')
		if i < 0 {
			return append(dst, s...)
		}
		dst = append(append(dst, s[:i]...), "&amp;"...)
		s = s[i+1:]
	}
}

// appendEscaped escapes a letter that needs none.
func (w *Web) appendEscaped(dst, path []byte) []byte {
	for i, c := range path {
		if c == '?' {
			break
		}
		if c >= 'a' && c <= 'z' && (i+len(path))%3 == 0 {
			dst = append(append(dst, path[:i]...), '%')
			dst = strconv.AppendInt(dst, int64(c), 16)
			return w.appendAmp(dst, path[i+1:])
		}
	}
	return w.appendAmp(dst, path)
}

// appendRelative appends path as seen from the directory of page n.
func (w *Web) appendRelative(dst []byte, site, n int, path []byte) []byte {
	var mem [128]byte
	own := w.appendPath(mem[:0], site, kindPage, n, 0)
	if i := bytes.IndexByte(own, '?'); i >= 0 {
		own = own[:i]
	}
	dst = append(dst, "./"...)
	for range bytes.Count(own, []byte("/")) - 1 {
		dst = append(dst, "../"...)
	}
	return w.appendAmp(dst, path[1:])
}
