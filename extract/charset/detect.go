package charset

import (
	"unicode/utf8"

	"github.com/gogs/chardet"
)

// Detect guesses the encoding of a page that declares none, "" when its bytes
// say nothing. UTF-8 shows by itself. For the rest the detector is a port of
// ICU's; on this package's samples it reads 21 of 23 as they were written,
// where wlynxg/chardet reads 18 and x/net/html/charset, which knows but UTF-8
// and windows-1252, reads 4.
func Detect(b []byte) string {
	if isASCII(b) {
		if isJP(b) {
			return "iso-2022-jp"
		}
		return ""
	}
	if utf8.Valid(WholeRunes(b)) {
		return "utf-8"
	}
	all, err := chardet.NewHtmlDetector().DetectAll(b)
	if err != nil {
		return ""
	}
	best, name := 0, ""
	for _, r := range all { // in no fixed order where the confidence is the same
		label := r.Charset
		if label == "GB-18030" {
			label = "gb18030"
		}
		if _, n := Lookup(label); n != "" && (r.Confidence > best || r.Confidence == best && n < name) {
			best, name = r.Confidence, n
		}
	}
	return name
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

// isJP reports whether ASCII bytes hold an escape to JIS X 0208.
func isJP(b []byte) bool {
	for i := 0; i+2 < len(b); i++ {
		if b[i] == 0x1b && b[i+1] == '$' && (b[i+2] == 'B' || b[i+2] == '@') {
			return true
		}
	}
	return false
}

// WholeRunes cuts off a character that the end of b cuts.
func WholeRunes(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if c >= 0xC0 && !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}
