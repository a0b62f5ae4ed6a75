package crawl

import (
	"net/http"
	"slices"
)

// Causes of retries and of the dead that the worker itself names; the others
// are the classes of fetch.Error.
const (
	causeInvalid      = "invalid"       // the stored URL does not parse (a newer version wrote it)
	causeRobots       = "robots"        // robots.txt disallows it
	causeStatus       = "status"        // the server kept answering with a code that is retried
	causeRedirectLoop = "redirect_loop" // redirects to itself, or too many in a row
	causeUnreachable  = "unreachable"   // its site could not be reached for too long
	causeOther        = "other"
)

// maxErrorText bounds the error text kept with a dead URL and in its record.
const maxErrorText = 300

// retryCode reports whether a status is worth another attempt.
func (c *Config) retryCode(status int) bool {
	if c.RetryCodes != nil {
		return slices.Contains(c.RetryCodes, status)
	}
	switch status {
	case 408, 425, 429, 500, 502, 503, 504:
		return true
	}
	return status >= 520 && status < 530
}

func statusText(status int) string {
	if t := http.StatusText(status); t != "" {
		return t
	}
	return "unknown status"
}
