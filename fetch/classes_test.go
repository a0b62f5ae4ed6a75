package fetch

import (
	"errors"
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
