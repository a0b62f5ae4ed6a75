package extract

// token is what a '<' starts.
type token uint8

const (
	tokenMore token = iota // too little to tell
	tokenText
	tokenStart
	tokenEnd
	tokenComment
	tokenBogus
	tokenCDATA
	tokenNothing // "</>"
)

// classify tells what the '<' that b starts with begins, and how many bytes of
// it are settled by that.
func (m *markup) classify(b []byte) (token, int) {
	if len(b) < 2 {
		return tokenMore, 0
	}
	switch c := b[1]; {
	case isLetter(c):
		return tokenStart, 2
	case c == '/':
		switch {
		case len(b) < 3:
			return tokenMore, 0
		case isLetter(b[2]):
			return tokenEnd, 3
		case b[2] == '>':
			return tokenNothing, 3
		}
		return tokenBogus, 2
	case c == '?':
		return tokenBogus, 2
	case c != '!':
		return tokenText, 1
	}
	if starts, more := prefix(b, "<!--"); starts {
		return tokenComment, 4
	} else if more {
		return tokenMore, 0
	}
	if m.xhtml || m.inForeign() {
		if starts, more := prefix(b, "<![CDATA["); starts {
			return tokenCDATA, 9
		} else if more {
			return tokenMore, 0
		}
	}
	return tokenBogus, 2
}

// prefix tells whether b starts with p, or may once there is more of it.
func prefix(b []byte, p string) (starts, more bool) {
	if len(b) >= len(p) {
		return string(b[:len(p)]) == p, false
	}
	return false, string(b) == p[:len(b)]
}
