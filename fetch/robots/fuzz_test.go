package robots

import (
	"bytes"
	"testing"
)

// naive matches as Google's parser does: it keeps the set of places in path
// that the pattern so far can end at.
func naive(path, pattern []byte, anchored bool) bool {
	at := map[int]bool{0: true}
	for _, c := range pattern {
		next := map[int]bool{}
		for i := range at {
			if c == '*' {
				for j := i; j <= len(path); j++ {
					next[j] = true
				}
			} else if i < len(path) && path[i] == c {
				next[i+1] = true
			}
		}
		at = next
	}
	if anchored {
		return at[len(path)]
	}
	return len(at) > 0
}

func FuzzMatch(f *testing.F) {
	f.Add([]byte("/a*b$"), []byte("/axb"))
	f.Add([]byte("/*a*aa*a$"), []byte("/aaaa"))
	f.Add([]byte("/a?u=%3A*%2f"), []byte("/a?u=:x/%2a"))
	f.Add([]byte("/%2a**%41"), []byte("/*A"))
	f.Fuzz(func(t *testing.T, pattern, path []byte) {
		if len(pattern) == 0 || len(pattern) > 200 || len(path) > 300 {
			return
		}
		m := compile(pattern, false, 1)
		r := Rules{rules: []rule{m}}
		normal := appendNormal(nil, path, false, m.query)
		if got, want := r.Allowed(path), !naive(normal, m.pattern, m.anchored); got != want {
			t.Fatalf("%q (%q) on %q (%q): allowed %v", pattern, m.pattern, path, normal, got)
		}
		if again := appendNormal(nil, normal, false, m.query); !bytes.Equal(again, normal) {
			t.Fatalf("normal form of %q is %q, whose is %q", path, normal, again)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, c := range verdictCases {
		f.Add([]byte(c.file), []byte("/a/b?c"))
	}
	f.Fuzz(func(t *testing.T, file, path []byte) {
		r := Parse(file, "seine")
		packed := r.Append(nil)
		back, err := Load(packed)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(back.Append(nil), packed) {
			t.Fatal("the compact form changes")
		}
		if a, b := r.Explain(path), back.Explain(path); a != b || a.Allowed != r.Allowed(path) {
			t.Fatalf("%+v and %+v", a, b)
		}
	})
}

func FuzzLoad(f *testing.F) {
	for _, c := range verdictCases {
		f.Add(Parse([]byte(c.file), "seine").Append(nil), []byte("/a"))
	}
	f.Fuzz(func(t *testing.T, packed, path []byte) {
		if r, err := Load(packed); err == nil {
			r.Allowed(path)
			if _, err := Load(r.Append(nil)); err != nil {
				t.Fatal(err)
			}
		}
	})
}
