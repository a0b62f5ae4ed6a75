package work

import (
	"bytes"
	"testing"

	"seine/frontier"
)

// Digests are those of other programs: sha256sum, and xxhsum -H2, whose canonical
// form is the high half first. A body in pieces is the same body.
func TestDigest(t *testing.T) {
	var d digest
	for range 2 { // a digest is used again
		for _, c := range []struct{ kind, body, want string }{
			{frontier.DigestSHA256, "abc", "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
			{frontier.DigestXXH3, "", "xxh3:99aa06d3014798d86001c324468d497f"},
			{frontier.DigestXXH3, "abc", "xxh3:06b05ab6733a618578af5f94892f3950"},
			{frontier.DigestNone, "abc", ""},
		} {
			d.begin(c.kind)
			for _, b := range []byte(c.body) {
				d.write([]byte{b})
			}
			if got := d.text(); got != c.want {
				t.Errorf("%s of %q is %q, not %q", c.kind, c.body, got, c.want)
			}
		}
	}
}

func TestDigestAllocates(t *testing.T) {
	page := bytes.Repeat([]byte("page"), 4096)
	for _, kind := range []string{frontier.DigestXXH3, frontier.DigestSHA256, frontier.DigestNone} {
		var d digest
		d.begin(kind)
		if n := testing.AllocsPerRun(100, func() {
			d.begin(kind)
			d.write(page)
			d.text()
		}); n > 1 {
			t.Errorf("%s: %v allocations a page beside its text", kind, n-1)
		}
	}
}

// BenchmarkDigest is what the digest of a page costs, by its kind.
func BenchmarkDigest(b *testing.B) {
	page := bytes.Repeat([]byte("<p>Words that lead nowhere.</p>\n"), 2048)
	for _, kind := range []string{frontier.DigestXXH3, frontier.DigestSHA256, frontier.DigestNone} {
		b.Run(kind, func(b *testing.B) {
			var d digest
			for b.Loop() {
				d.begin(kind)
				d.write(page)
				d.text()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(page)>>10), "ns/KB")
		})
	}
}
