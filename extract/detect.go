package extract

import "unicode/utf8"

// detect guesses the encoding of a document that declares none, "" when its
// bytes say nothing.
func detect(b []byte) string {
	ascii := true
	for _, c := range b {
		if c >= 0x80 {
			ascii = false
			break
		}
	}
	if ascii {
		return ""
	}
	for i := 0; i < utf8.UTFMax && len(b) > 0; i++ { // a character cut at the end
		if utf8.Valid(b) {
			return "utf-8"
		}
		b = b[:len(b)-1]
	}
	return ""
}
