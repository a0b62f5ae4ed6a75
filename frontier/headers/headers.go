// Package headers knows which headers may be added to a request.
package headers

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Check fails for a header that HTTP does not allow (RFC 9110, section 5), or that belongs
// to the connection or the framing. The value may be a secret, and so may a name that is none,
// such as a whole line of a header: the error has neither.
func Check(name, value string) error {
	if !httpguts.ValidHeaderFieldName(name) {
		return errors.New("a header has a name that is not allowed")
	}
	if !httpguts.ValidHeaderFieldValue(value) {
		return fmt.Errorf("header %q has a value that is not allowed", name)
	}
	for _, own := range [...]string{"Host", "Connection", "Keep-Alive", "Content-Length", "Transfer-Encoding", "Upgrade",
		"Proxy-Authorization", "Proxy-Connection", "Expect", "TE", "Trailer"} {
		if strings.EqualFold(name, own) {
			return fmt.Errorf("header %q is set by the crawler itself", name)
		}
	}
	return nil
}
