package canon

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestGuards(t *testing.T) {
	long := func(n int) string { return "/" + strings.Repeat("x", n-len("http://h/")) }
	deep := func(n int) (s string) {
		for i := range n {
			s += "/x" + strings.Repeat("y", i)
		}
		return s
	}
	args := func(n int) string { return "/?x" + strings.Repeat("&x", n-1) }
	for _, c := range []struct {
		cfg  Config
		path string
		want error
	}{
		{Config{}, long(65536), nil}, {Config{}, long(65537), ErrTooLong}, {Config{}, "/" + strings.Repeat("é", 10921), nil},
		{Config{}, "/" + strings.Repeat("é", 10922), ErrTooLong}, {Config{}, "/\\" + strings.Repeat("x", 140000), ErrTooLong},
		{Config{}, "/\\" + strings.Repeat("../", 400), ErrTooDeep}, {Config{MaxSegments: -1}, "/\\" + strings.Repeat("../", 400), nil},
		{Config{}, "@" + strings.Repeat("@", 40) + "h", ErrTooLong}, {Config{MaxLength: -1}, strings.Repeat("@", 41) + "h", nil},
		{Config{}, strings.Repeat("é", 300), ErrTooLong},
		{Config{}, "/x#" + strings.Repeat("y", 140000), nil},
		{Config{MaxLength: 20}, long(20), nil}, {Config{MaxLength: 20}, long(21), ErrTooLong}, {Config{MaxLength: -1}, long(30000), nil},
		{Config{}, deep(32), nil}, {Config{}, deep(33), ErrTooDeep}, {Config{MaxSegments: 2}, "/a/b", nil}, {Config{MaxSegments: 2}, "/a/b/", ErrTooDeep},
		{Config{MaxSegments: -1}, deep(50), nil},
		{Config{}, "/a/b/a/b", nil}, {Config{}, "/a/b/a/b/a/b", ErrRepeats}, {Config{}, "/a/a/a", ErrRepeats}, {Config{}, "/a/a/ab/b", nil},
		{Config{}, "/a/x/a/y/a?z", ErrRepeats}, {Config{}, "/2024/01/01/01/1", nil}, {Config{}, "/a////b////c", nil},
		{Config{}, "/ab/ba/bb/ad/cb", nil}, {Config{MaxRepeats: 1}, "/a/a", ErrRepeats}, {Config{MaxRepeats: 3}, "/a/a/a", nil},
		{Config{MaxRepeats: 3}, "/a/a/a/a", ErrRepeats}, {Config{MaxRepeats: -1}, strings.Repeat("/a", 20), nil},
		{Config{}, args(32), nil}, {Config{}, args(33), ErrTooManyArgs}, {Config{MaxArgs: 1}, "/?a=b=c", nil}, {Config{MaxArgs: 1}, "/?a&", ErrTooManyArgs},
		{Config{MaxArgs: -1}, args(500), nil},
	} {
		var u URL
		if err := NewParser(c.cfg).Parse(&u, []byte("http://h"+c.path)); !errors.Is(err, c.want) {
			t.Errorf("%+v %.60q: %v, want %v", c.cfg, c.path, err, c.want)
		}
	}
}

// The bound on what stands before the path is one on hosts, not on the first
// segment of a relative link.
func TestGuardOfRelative(t *testing.T) {
	p := NewParser(Config{})
	var base, u URL
	if err := p.Parse(&base, []byte("http://h/d/x")); err != nil {
		t.Fatal(err)
	}
	segment := strings.Repeat("x", 600)
	if err := p.Resolve(&u, &base, []byte(segment+"\ty"), nil); err != nil || u.String() != "http://h/d/"+segment+"y" {
		t.Errorf("%.40s: %v", u.String(), err)
	}
	for _, raw := range []string{"//", "\\/", "https:", "http:/\\"} {
		if err := p.Resolve(&u, &base, []byte(raw+segment+"\ty"), nil); !errors.Is(err, ErrTooLong) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func TestConfigValidate(t *testing.T) {
	for _, c := range []struct {
		cfg Config
		ok  bool
	}{
		{Config{}, true}, {Config{MaxLength: -1, MaxArgs: -1}, true}, {Config{MaxLength: 3}, false}, {Config{MaxLength: 1 << 21}, false},
	} {
		if err := c.cfg.Validate(); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.cfg, err)
		}
	}
}

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
