package fetch

import (
	"errors"
	"os"
	"regexp"
	"testing"
)

// class of an error, "" for nil, "?" for one that is none of ours.
func class(err error) string {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Class
	}
	return "?"
}

func TestErrorTextIsOneLine(t *testing.T) {
	err := fail(ClassProtocol, errors.New("bad\x1b[31m\r\nü"))
	if got := err.Error(); got != `fetch: protocol: bad\x1b[31m\r\n\u00fc` {
		t.Errorf("%q", got)
	}
}

// TestClassesAreClosed: every constant is in the list, once.
func TestClassesAreClosed(t *testing.T) {
	src, err := os.ReadFile("errors.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, c := range Classes() {
		seen[c]++
	}
	consts := regexp.MustCompile(`(?m)^\tClass\w+\s+= "(\w+)"`).FindAllStringSubmatch(string(src), -1)
	for _, m := range consts {
		if seen[m[1]] != 1 {
			t.Errorf("%s stands %d times in the list", m[1], seen[m[1]])
		}
	}
	if len(consts) != len(seen) || len(consts) < 15 {
		t.Errorf("%d constants, %d classes", len(consts), len(seen))
	}
}
