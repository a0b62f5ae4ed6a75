package work

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"seine/frontier"
)

// Causes of retries and of the dead that a fetcher names; the others are the classes
// of fetch.Error, those that drivers know too, and what a Handler names.
const (
	CauseInvalid      = "invalid"       // the stored URL does not parse (a newer version wrote it)
	CauseRobots       = "robots"        // robots.txt disallows it
	CausePreference   = "preference"    // robots.txt refuses it for a purpose of the crawl
	CauseStatus       = "status"        // the server kept answering with a code that is retried
	CauseRedirectLoop = "redirect_loop" // redirects to itself, or too many in a row
	CauseUnreachable  = "unreachable"   // its site could not be reached for too long
	CauseSilent       = "silent_shard"  // candidates of its page are of a shard that does not answer; never of the dead
	CauseHandler      = "handler"       // the Handler failed at its page
	CauseOther        = "other"
)

const (
	// MaxRetryAfter bounds what a site may ask for in Retry-After.
	MaxRetryAfter = time.Hour
	// MaxBackoff bounds how long a URL's retry or a failing site waits.
	MaxBackoff = time.Hour
	// maxErrorText bounds the error text kept with a dead URL and in its record.
	maxErrorText = 300
)

// Retry has item tried again, no sooner than after, or makes it dead after its last
// try.
func (cfg *Config) Retry(item *frontier.Item, cause, text string, after time.Duration) frontier.Outcome {
	if int(item.Attempts)+1 >= cfg.MaxTries {
		return Dead(item, cause, text)
	}
	return frontier.Outcome{
		Index: item.Index, Kind: frontier.Retry, Cause: cause,
		NotBefore: max(RetryDelay(cfg.Backoff, int(item.Attempts)), min(after, MaxRetryAfter)),
	}
}

// Dead gives item up.
func Dead(item *frontier.Item, cause, text string) frontier.Outcome {
	return frontier.Outcome{Index: item.Index, Kind: frontier.Dead, Cause: cause, Text: Clip(text, maxErrorText)}
}

// Doubled is d doubled n times, at most MaxBackoff.
func Doubled(d time.Duration, n int) time.Duration {
	for ; n > 0 && d < MaxBackoff; n-- {
		d *= 2
	}
	return min(d, MaxBackoff)
}

// RetryDelay is how long the n-th retry (from 0) of a URL waits: backoff,
// doubling up to an hour, and up to half as long again so that a site's retries
// do not come back as one.
func RetryDelay(backoff time.Duration, n int) time.Duration {
	d := Doubled(backoff, n)
	return d + time.Duration(rand.Float64()*float64(d)/2)
}

// StatusText names a status.
func StatusText(status int) string {
	if t := http.StatusText(status); t != "" {
		return t
	}
	return "unknown status"
}

// Clip bounds a text from the web and makes it valid UTF-8.
func Clip(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
