package site

import (
	"fmt"
	"testing"
	"time"

	"seine/fetch/robots"
)

// TestRulesCacheBound: rules take bounded memory, whatever sites serve, and a
// few huge ones leave most of the others where they are.
func TestRulesCacheBound(t *testing.T) {
	rc := NewRulesCache()
	small := robots.Parse([]byte("User-agent: *\nDisallow: /x"), "seine")
	file := []byte("User-agent: *\n")
	for i := range 60_000 {
		file = fmt.Appendf(file, "Disallow:/%x\n", i)
	}
	huge := robots.Parse(file, "seine")
	if n := huge.Bytes(); n < 4<<20 {
		t.Fatalf("60,000 rules take %d bytes", n)
	}
	const others = 5000
	for i := range others {
		rc.StoreRules(fmt.Sprintf("http://a%d.example", i), "seine", small, time.Hour)
	}
	for i := range 100 {
		origin := fmt.Sprintf("http://huge%d.example", i/2) // each twice
		rc.StoreRules(origin, "seine", huge, time.Hour)
		if rc.bytes > rc.most {
			t.Fatalf("%d: %d bytes", i, rc.bytes)
		}
		if rc.Get([]byte(origin), "seine") == nil {
			t.Fatalf("%d: not there", i)
		}
	}
	left := 0
	for i := range others {
		if rc.Get(fmt.Appendf(nil, "http://a%d.example", i), "seine") != nil {
			left++
		}
	}
	if left < others/10 { // two thirds are left mostly
		t.Errorf("huge rules left %d of %d others", left, others)
	}
	for len(rc.origins) > 0 {
		rc.drop(rc.victim())
	}
	if rc.bytes != 0 {
		t.Errorf("%d bytes of nothing", rc.bytes)
	}
}
