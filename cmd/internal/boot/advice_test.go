package boot

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"seine/fetch"
	"seine/frontier"
	"seine/shard"
)

// TestAdvice: errors that flags or variables mend name them.
func TestAdvice(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("%w: h:1: NOAUTH Authentication required.", shard.ErrUnreachable), "SEINE_REDIS_PASSWORD"},
		{fmt.Errorf("%w: h:1: WRONGPASS invalid username-password pair", shard.ErrUnreachable), "--redis-password-file"},
		{fmt.Errorf("%w: 127.0.0.1:6379: connection refused", shard.ErrUnreachable), "--embedded"},
		{fmt.Errorf("%w: 127.0.0.1:7001: connection refused", shard.ErrUnreachable), ""},
		{frontier.Layout{Shards: 3}.Check(frontier.Layout{Shards: 2}), "leave --shards out"},
		{frontier.ErrNoCrawl, ""},
		{fmt.Errorf("%w: x509: certificate signed by unknown authority", shard.ErrUnreachable), "--redis-ca FILE"},
		{fmt.Errorf("check: %w", &fetch.Error{Class: fetch.ClassCertificate, Err: errors.New("x509: certificate signed by unknown authority")}), ""},
		{&fetch.Error{Class: fetch.ClassCertificate, Err: errors.New("x509: certificate is valid for a.example, not b.example")}, ""},
	} {
		if got := advice(c.err); got != "" && c.want == "" || !strings.Contains(got, c.want) {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}
