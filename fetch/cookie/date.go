package cookie

import (
	"strings"
	"time"
)

// parseDate reads the date of an Expires attribute by the algorithm of RFC 6265,
// section 5.1.1: it takes the first token that is a time, a day, a month and a year,
// in whatever order and between whatever else. ok is false where one is missing or
// there is no such date.
func parseDate(v string) (t time.Time, ok bool) {
	clock, day, month, year := [3]int{-1}, -1, -1, -1
	for token := range strings.FieldsFuncSeq(v, isDelimiter) {
		if clock[0] < 0 {
			if c, ok := parseClock(token); ok {
				clock = c
				continue
			}
		}
		if day < 0 {
			if n, rest := number(token, 1, 2); rest >= 0 {
				day = n
				continue
			}
		}
		if month < 0 && len(token) >= 3 {
			if at := strings.Index("janfebmaraprmayjunjulaugsepoctnovdec", strings.ToLower(token[:3])); at >= 0 && at%3 == 0 {
				month = at/3 + 1
				continue
			}
		}
		if year < 0 {
			if n, rest := number(token, 2, 4); rest >= 0 {
				year = n
			}
		}
	}
	switch {
	case year >= 70 && year <= 99:
		year += 1900
	case year >= 0 && year <= 69:
		year += 2000
	}
	if clock[0] < 0 || day < 1 || month < 0 || year < 1601 || clock[0] > 23 || clock[1] > 59 || clock[2] > 59 {
		return t, false
	}
	t = time.Date(year, time.Month(month), day, clock[0], clock[1], clock[2], 0, time.UTC)
	return t, t.Day() == day // else the month has no such day
}

// isDelimiter names what parts the tokens of a date.
func isDelimiter(r rune) bool {
	return r == '\t' || r >= ' ' && r <= '/' || r >= ';' && r <= '@' || r >= '[' && r <= '`' || r >= '{' && r <= '~'
}

// parseClock reads hours, minutes and seconds of one or two digits each, and whatever
// follows that is no digit.
func parseClock(token string) (c [3]int, ok bool) {
	for i := range c {
		n, rest := number(token, 1, 2)
		if rest < 0 || i < 2 && (rest == len(token) || token[rest] != ':') {
			return c, false
		}
		c[i] = n
		token = token[min(rest+1, len(token)):]
	}
	return c, true
}

// number reads a number of least to most digits at the start of a token, and says
// where it ends; -1 where there is none, or where a digit more follows.
func number(token string, least, most int) (n, end int) {
	for end < len(token) && token[end] >= '0' && token[end] <= '9' {
		if end == most {
			return 0, -1
		}
		n = 10*n + int(token[end]-'0')
		end++
	}
	if end < least {
		return 0, -1
	}
	return n, end
}
