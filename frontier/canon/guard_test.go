package canon

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestGuardsCountAsDocumented compares the guards' shortcuts with plain counts.
func TestGuardsCountAsDocumented(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		segment := rapid.SampledFrom([]string{"a", "b", "ab", "ba", "page.html", "some-longer-segment", "", "12", "7"})
		path := "/" + strings.Join(rapid.SliceOfN(segment, 0, 12).Draw(t, "base"), "/")
		link := strings.Join(rapid.SliceOfN(segment, 1, 6).Draw(t, "link"), "/")
		if strings.HasPrefix(link, "//") {
			t.Skip("names a host")
		}
		cfg := Config{MaxSegments: rapid.IntRange(-1, 12).Draw(t, "segments"), MaxRepeats: rapid.IntRange(-1, 4).Draw(t, "repeats")}
		var base, u, guarded URL
		free, p := unguarded(), NewParser(cfg)
		if err := free.Parse(&base, []byte("http://h"+path)); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time with what the first left in the base
			if err := free.Resolve(&u, &base, []byte(link), nil); err != nil {
				t.Fatal(err)
			}
			got, want := p.Resolve(&guarded, &base, []byte(link), nil), plainCount(p.cfg, string(u.Path()))
			if got != want {
				t.Fatalf("%+v %s: %v, want %v", p.cfg, u.Path(), got, want)
			}
		}
	})
}

// plainCount is the guards as their documentation has them.
func plainCount(cfg Config, path string) error {
	segments, count := strings.Split(path, "/")[1:], map[string]int{}
	if cfg.MaxSegments > 0 && len(segments) > cfg.MaxSegments {
		return ErrTooDeep
	}
	for _, s := range segments {
		if strings.Trim(s, "0123456789") != "" {
			if count[s]++; cfg.MaxRepeats > 0 && count[s] > cfg.MaxRepeats {
				return ErrRepeats
			}
		}
	}
	return nil
}
