package redis

import (
	"bytes"
	"strings"
	"testing"
)

// Rules come back as they were stored, up to a bound, and not from what is broken.
func TestStoredRules(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, plainBelow - 1, plainBelow, 10_000, maxInflated, maxInflated + 1} {
		rules := bytes.Repeat([]byte("Disallow: /x\n"), size/13+1)[:size]
		packed, err := deflateRules(rules)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := inflateRules(string(packed)); err != nil || !bytes.Equal(got, rules[:min(size, maxInflated)]) {
			t.Errorf("%d bytes: %d, %v", size, len(got), err)
		}
		if size < plainBelow || size > maxInflated {
			continue
		}
		for n := 1; n < len(packed); n += 1 + len(packed)/100 {
			if got, err := inflateRules(string(packed[:n])); err == nil {
				t.Errorf("%d of %d bytes of %d: %d bytes and no error", n, len(packed), size, len(got))
			}
		}
	}
	if got, err := inflateRules(strings.Repeat("\x09", 10)); got != nil || err != nil {
		t.Errorf("of another version: %q, %v", got, err)
	}
}
