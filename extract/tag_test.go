package extract

import "testing"

func TestHotNamesDoNotCollide(t *testing.T) {
	n := newNames(&Config{Kinds: All})
	hot := 0
	for _, e := range n.slots {
		if e.flags&(flagLook|flagRule) == 0 || e.key >= 1<<56 {
			continue
		}
		if hot++; n.hot[e.key*hotFactor>>(64-hotBits)] != e.key {
			t.Errorf("%x is pushed out", e.key)
		}
	}
	if hot < 30 {
		t.Errorf("%d hot names", hot)
	}
}
