package canon

import (
	"bytes"
	"unicode/utf8"
)

// plainHost says that host, of [A-Za-z0-9._-] only, needs no more than lower
// case: it is a name that no browser would read as a number, or an IPv4
// address in its usual form.
func plainHost(host []byte) bool {
	last := host[bytes.LastIndexByte(host, '.')+1:]
	if len(last) == 0 {
		return false
	}
	return !isDigit(last[0]) || isIPv4(host)
}

// isIPv4 says whether host is an IPv4 address as browsers print it.
func isIPv4(host []byte) bool {
	for part := 1; part <= 4; part++ {
		n, digits := 0, 0
		for len(host) > 0 && isDigit(host[0]) && digits < 4 {
			n, digits = n*10+int(host[0]-'0'), digits+1
			host = host[1:]
		}
		if digits == 0 || n > 255 || digits > 1 && n < 10 || digits > 2 && n < 100 {
			return false
		}
		if part < 4 {
			if len(host) == 0 || host[0] != '.' {
				return false
			}
			host = host[1:]
		}
	}
	return len(host) == 0
}

// plainPort returns the length of the port at the start of s, with its colon;
// 0 if it is not in its usual form.
func plainPort(s []byte) int {
	i, n := 1, 0
	for i < len(s) && isDigit(s[i]) && i < len(":65535") {
		n = n*10 + int(s[i]-'0')
		i++
	}
	if i == 1 || s[1] == '0' || n > 65535 {
		return 0
	}
	return i
}

// defaultPort says whether port is the one of the scheme, given the length of
// scheme and slashes.
func defaultPort(scheme int, port []byte) bool {
	if scheme == len("http://") {
		return string(port) == "80"
	}
	return string(port) == "443"
}

// endsInNumber says whether browsers read host as an IPv4 address: its last
// label is a number. After https://url.spec.whatwg.org/#ends-in-a-number-checker.
func endsInNumber(host string) bool {
	last := lastLabel(host)
	if len(last) >= 2 && last[0] == '0' && last[1]|0x20 == 'x' {
		for _, c := range []byte(last[2:]) {
			if unhex[c] > 15 {
				return false
			}
		}
		return true
	}
	for _, c := range []byte(last) {
		if !isDigit(c) {
			return false
		}
	}
	return last != ""
}

// lastLabel returns what follows the last dot of host, but for one at its end.
func lastLabel(host string) string {
	end := len(host)
	if end > 0 && host[end-1] == '.' {
		end--
	}
	start := end
	for start > 0 && host[start-1] != '.' {
		start--
	}
	return host[start:end]
}

func isDigit(c byte) bool { return c-'0' <= 9 }

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// lower turns ASCII letters to lower case in place.
func lower(b []byte) {
	for i, c := range b {
		if class[c]&upper != 0 {
			b[i] = c | 0x20
		}
	}
}
