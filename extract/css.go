package extract

import (
	"bytes"
	"unicode/utf8"

	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/css"

	"seine/extract/charset"
)

// sheet finds the links of a style sheet: url() wherever it stands, the string
// of an @import, and those of an image-set().
type sheet struct {
	win     window
	at      atRule
	images  int // open parentheses since image-set(, itself included
	scratch []byte
}

// atRule is the rule whose prelude is being read.
type atRule uint8

const (
	atNone atRule = iota
	atImport
	atNamespace // its URL is a name, not a link
)

func (s *sheet) reset(max int) {
	s.win.reset(max)
	s.at, s.images = atNone, 0
}

// sheetOver names what ends a token of a style sheet too long to keep; space,
// names and numbers end by themselves.
func sheetOver(b []byte) string {
	switch {
	case bytes.HasPrefix(b, []byte("/*")):
		return "*/"
	case b[0] == '"', b[0] == '\'':
		return string(b[:1])
	case len(b) >= 4 && charset.EqualFold(b[:4], "url("):
		return ")"
	}
	return ""
}

func (c *collector) sheetWrite(b []byte) { c.css.win.write(b, c.lexSheet, sheetOver) }

func (c *collector) sheetClose() {
	c.css.win.close(c.lexSheet)
	c.facts.Cut += c.css.win.cut
	c.css.win.cut = 0
}

// lexSheet hands on the links in b, up to the last token that is surely whole.
func (c *collector) lexSheet(b []byte, final bool) int {
	done := 0
	in := parse.NewInputBytes(b)
	defer in.Restore()
	for lex := css.NewLexer(in); ; {
		tt, data := lex.Next()
		if tt == css.ErrorToken || done+len(data) == len(b) && !final {
			return done
		}
		done += len(data)
		c.sheetToken(tt, data)
	}
}

func (c *collector) sheetToken(tt css.TokenType, data []byte) {
	switch tt {
	case css.AtKeywordToken:
		switch {
		case charset.EqualFold(data, "@import"):
			c.css.at = atImport
		case charset.EqualFold(data, "@namespace"):
			c.css.at = atNamespace
		default:
			c.css.at = atNone
		}
	case css.SemicolonToken, css.LeftBraceToken, css.RightBraceToken:
		c.css.at, c.css.images = atNone, 0
	case css.FunctionToken:
		if c.css.images > 0 || charset.EqualFold(data, "image-set(") || charset.EqualFold(data, "-webkit-image-set(") {
			c.css.images++
		}
	case css.LeftParenthesisToken:
		if c.css.images > 0 {
			c.css.images++
		}
	case css.RightParenthesisToken:
		c.css.images = max(c.css.images-1, 0)
	case css.StringToken:
		switch {
		case c.css.at == atImport:
			c.css.at = atNone
			c.sendSheet(Import, unquote(data))
		case c.css.images == 1: // type("image/png") inside it is none
			c.sendSheet(CSS, unquote(data))
		}
	case css.URLToken:
		at := c.css.at
		c.css.at = atNone
		switch at {
		case atNone:
			c.sendSheet(CSS, insideURL(data))
		case atImport:
			c.sendSheet(Import, insideURL(data))
		}
	}
}

func (c *collector) sendSheet(k Kind, b []byte) {
	if len(b) == 0 || !c.cfg.Kinds.Has(k) {
		return
	}
	c.css.scratch = unescapeCSS(c.css.scratch[:0], b)
	c.send(k, c.dec.utf8(c.css.scratch))
}

// insideURL cuts "url(", ")", white space and quotes off a URL token.
func insideURL(b []byte) []byte {
	b = b[bytes.IndexByte(b, '(')+1:]
	if len(b) > 0 && b[len(b)-1] == ')' {
		b = b[:len(b)-1]
	}
	return unquote(trim(b))
}

func unquote(b []byte) []byte {
	if len(b) > 0 && (b[0] == '"' || b[0] == '\'') {
		if n := len(b); n > 1 && b[n-1] == b[0] {
			return b[1 : n-1]
		}
		return b[1:]
	}
	return b
}

// unescapeCSS appends b with its escapes resolved (CSS Syntax 3, 4.3.7).
func unescapeCSS(dst, b []byte) []byte {
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' || i+1 == len(b) {
			dst = append(dst, b[i])
			continue
		}
		i++
		r, n := rune(0), 0
		for n < 6 && i+n < len(b) && digit(b[i+n]) < 16 {
			r = r<<4 | digit(b[i+n])
			n++
		}
		switch {
		case n > 0:
			if i += n - 1; i+1 < len(b) && charset.IsSpace(b[i+1]) {
				if i++; b[i] == '\r' && i+1 < len(b) && b[i+1] == '\n' {
					i++
				}
			}
			if r == 0 || !utf8.ValidRune(r) {
				r = utf8.RuneError
			}
			dst = utf8.AppendRune(dst, r)
		case b[i] == '\n', b[i] == '\f': // the line goes on
		case b[i] == '\r':
			if i+1 < len(b) && b[i+1] == '\n' {
				i++
			}
		default:
			dst = append(dst, b[i])
		}
	}
	return dst
}

// styleAttr hands on the links of a style attribute. Its tokens are bounded
// like the tag.
func (c *collector) styleAttr(b []byte) {
	if charset.IndexFold(b, "url") < 0 && charset.IndexFold(b, "image-set") < 0 && bytes.IndexByte(b, '\\') < 0 {
		return
	}
	written := c.dec.Decoder // the attribute is UTF-8 by now
	c.dec.Decoder = charset.Decoder{}
	c.css.reset(c.cfg.MaxTag)
	c.attrBuf = appendNoNUL(c.attrBuf[:0], b)
	c.lexSheet(c.attrBuf, true)
	c.dec.Decoder = written
}
