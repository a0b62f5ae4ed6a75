package charset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// indexes are those of the WHATWG Encoding standard, of a package that scripts/setup
// installs, with what the standard changed since: 18 pointers of GB 18030.
func indexes(t *testing.T) map[string][]rune {
	const path = "/usr/share/javascript/text-encoding/encoding-indexes.js"
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) && os.Getenv("CI") == "" {
		t.Skip("SKIPPED: no " + path + "; run scripts/setup")
	}
	if err != nil {
		t.Fatal(err)
	}
	start := bytes.Index(text, []byte("=\n{"))
	if start < 0 {
		t.Fatal("no indexes in " + path)
	}
	var raw map[string]json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(text[start+2:])).Decode(&raw); err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]rune)
	for name, list := range raw {
		var runes []rune // null is 0
		if json.Unmarshal(list, &runes) == nil {
			all[name] = runes
		}
	}
	var ranges [][2]int
	if err := json.Unmarshal(raw["gb18030-ranges"], &ranges); err != nil || len(ranges) == 0 {
		t.Fatal(err)
	}
	four := make([]rune, 39420)
	for i, r := range ranges {
		end := len(four)
		if i+1 < len(ranges) {
			end = min(end, ranges[i+1][0])
		}
		for p := r[0]; p < end; p++ {
			four[p] = rune(r[1] + p - r[0])
		}
	}
	four[7457] = 0xE7C7
	all["gb18030-four"] = four
	for b, r := range newGB {
		all["gb18030"][pointerGB(byte(b>>8), byte(b))] = r
	}
	return all
}

// newGB are the sequences that GB 18030 reads otherwise since 2022; what they meant
// before is still written so.
var newGB = map[int]rune{
	0xA6D9: 0xFE10, 0xA6DA: 0xFE12, 0xA6DB: 0xFE11, 0xA6DC: 0xFE13, 0xA6DD: 0xFE14, 0xA6DE: 0xFE15, 0xA6DF: 0xFE16,
	0xA6EC: 0xFE17, 0xA6ED: 0xFE18, 0xA6F3: 0xFE19, 0xFE59: 0x9FB4, 0xFE61: 0x9FB5, 0xFE66: 0x9FB6, 0xFE67: 0x9FB7,
	0xFE6D: 0x9FB8, 0xFE7E: 0x9FB9, 0xFE90: 0x9FBA, 0xFEA0: 0x9FBB,
}

var oldGB = map[rune]int{
	0xE78D: 0xA6D9, 0xE78E: 0xA6DA, 0xE78F: 0xA6DB, 0xE790: 0xA6DC, 0xE791: 0xA6DD, 0xE792: 0xA6DE, 0xE793: 0xA6DF,
	0xE794: 0xA6EC, 0xE795: 0xA6ED, 0xE796: 0xA6F3, 0xE81E: 0xFE59, 0xE826: 0xFE61, 0xE82B: 0xFE66, 0xE82C: 0xFE67,
	0xE832: 0xFE6D, 0xE843: 0xFE7E, 0xE854: 0xFE90, 0xE864: 0xFEA0,
}

func pointerGB(lead, c byte) int {
	switch {
	case c >= 0x40 && c < 0x7F:
		return int(lead-0x81)*190 + int(c) - 0x40
	case c >= 0x80 && c < 0xFF:
		return int(lead-0x81)*190 + int(c) - 0x41
	}
	return -1
}

// twoBytes are encodings whose characters beyond ASCII have one or two bytes.
var twoBytes = []struct {
	name, index string
	leads       [][2]byte
	pointer     func(lead, c byte) int
}{
	{"big5", "big5", [][2]byte{{0x81, 0xFE}}, func(lead, c byte) int {
		switch {
		case c >= 0x40 && c <= 0x7E:
			return int(lead-0x81)*157 + int(c) - 0x40
		case c >= 0xA1 && c <= 0xFE:
			return int(lead-0x81)*157 + int(c) - 0x62
		}
		return -1
	}},
	{"euc-kr", "euc-kr", [][2]byte{{0x81, 0xFE}}, func(lead, c byte) int {
		if c >= 0x41 && c <= 0xFE {
			return int(lead-0x81)*190 + int(c) - 0x41
		}
		return -1
	}},
	{"shift_jis", "jis0208", [][2]byte{{0x81, 0x9F}, {0xE0, 0xFC}}, func(lead, c byte) int {
		row := int(lead) - 0x81
		if lead >= 0xA0 {
			row = int(lead) - 0xC1
		}
		switch {
		case c >= 0x40 && c <= 0x7E:
			return row*188 + int(c) - 0x40
		case c >= 0x80 && c <= 0xFC:
			return row*188 + int(c) - 0x41
		}
		return -1
	}},
	{"euc-jp", "jis0208", [][2]byte{{0x8E, 0x8F}, {0xA1, 0xFE}}, func(lead, c byte) int {
		if lead >= 0xA1 && c >= 0xA1 && c <= 0xFE {
			return int(lead-0xA1)*94 + int(c) - 0xA1
		}
		return -1
	}},
	{"gbk", "gb18030", [][2]byte{{0x81, 0xFE}}, pointerGB},
	{"gb18030", "gb18030", [][2]byte{{0x81, 0xFE}}, pointerGB},
}

// decoded is what a decoder makes of b, however it is cut.
func decoded(t *testing.T, name string, b []byte) string {
	enc, _ := Lookup(name)
	got, err := enc.NewDecoder().Bytes(b)
	if err != nil {
		t.Fatalf("%s: %x: %v", name, b, err)
	}
	return string(got)
}

// TestReadsAsTheStandard compares each sequence of each encoding with the standard's
// index, and what is no sequence with its algorithms.
func TestReadsAsTheStandard(t *testing.T) {
	all := indexes(t)
	for _, e := range twoBytes {
		wrong := 0
		for lead := 0x80; lead <= 0xFF; lead++ {
			for c := range 256 {
				b := []byte{byte(lead), byte(c)}
				isLead := false
				for _, r := range e.leads {
					isLead = isLead || b[0] >= r[0] && b[0] <= r[1]
				}
				if isLead && (b[0] == 0x8F && e.name == "euc-jp" && c >= 0xA1 && c < 0xFF || strings.HasPrefix(e.name, "gb") && c >= '0' && c <= '9') {
					continue // more bytes; see below
				}
				want := ""
				if isLead {
					p, r := e.pointer(b[0], b[1]), rune(0)
					if p >= 0 && p < len(all[e.index]) {
						r = all[e.index][p]
					}
					switch {
					case e.name == "shift_jis" && p >= 8836 && p <= 10715:
						r = rune(0xE000 - 8836 + p)
					case e.name == "euc-jp" && lead == 0x8E && c >= 0xA1 && c <= 0xDF:
						r = rune(0xFF61 - 0xA1 + c)
					}
					switch {
					case e.name == "big5" && (p == 1133 || p == 1135 || p == 1164 || p == 1166):
						want = map[int]string{1133: "\u00CA\u0304", 1135: "\u00CA\u030C", 1164: "\u00EA\u0304", 1166: "\u00EA\u030C"}[p]
					case r != 0:
						want = string(r)
					case c < 0x80:
						want = "\uFFFD" + string(rune(c))
					default:
						want = "\uFFFD"
					}
				} else if c < 0x80 {
					switch {
					case e.name == "shift_jis" && lead == 0x80:
						want = "\u0080"
					case e.name == "shift_jis" && lead >= 0xA1 && lead <= 0xDF:
						want = string(rune(0xFF61 - 0xA1 + lead))
					case strings.HasPrefix(e.name, "gb") && lead == 0x80:
						want = "€"
					default:
						want = "\uFFFD"
					}
					want += string(rune(c))
				} else {
					continue // the second begins anew
				}
				if got := decoded(t, e.name, b); got != want {
					if wrong++; wrong < 10 {
						t.Errorf("%s: %x is %+q, want %+q", e.name, b, got, want)
					}
				}
			}
			if got := decoded(t, e.name, []byte{byte(lead)}); utf8.RuneCountInString(got) != 1 {
				t.Errorf("%s: %x alone is %+q", e.name, lead, got)
			}
		}
		if wrong > 0 {
			t.Errorf("%s: %d sequences", e.name, wrong)
		}
	}
	for p := range 94 * 94 {
		b := []byte{0x8F, byte(p/94 + 0xA1), byte(p%94 + 0xA1)}
		want := "\uFFFD"
		if r := all["jis0212"][p]; r != 0 {
			want = string(r)
		}
		if got := decoded(t, "euc-jp", b); got != want {
			t.Errorf("euc-jp: %x is %+q, want %+q", b, got, want)
		}
	}
	for p := range 126 * 10 * 126 * 10 {
		want := rune(utf8.RuneError)
		switch {
		case p < 39420:
			want = all["gb18030-four"][p]
		case p >= 189000 && p <= 1237575:
			want = rune(p - 189000 + 0x10000)
		case p%97 > 0: // a sample of what is none
			continue
		}
		for _, name := range []string{"gb18030", "gbk"} {
			if got := decoded(t, name, fourBytes(p)); got != string(want) {
				t.Fatalf("%s: %x is %+q, want %+q", name, fourBytes(p), got, want)
			}
		}
	}
	for _, c := range []struct{ name, bytes, want string }{
		{"gb18030", "\x81\x30\x81x", "\uFFFD0\u4E81"}, {"gb18030", "\x81\x30x", "\uFFFD0x"}, {"gb18030", "\x81\x30\x81", "\uFFFD"},
		{"gb18030", "\x81\x30\x81\x30\x81", "\u0080\uFFFD"}, {"euc-jp", "\x8F\xA1x", "\uFFFDx"}, {"euc-jp", "\x8F\xA1\x80", "\uFFFD"}, {"euc-jp", "\x8Fx", "\uFFFDx"},
		{"iso-2022-jp", "a\x1b$B$\"\x1b(Bb", "aあb"}, {"iso-2022-jp", "\x1b$@$\"", "あ"}, {"iso-2022-jp", "\x1b(J\\~a", "¥‾a"},
		{"iso-2022-jp", "\x1b(I!_`", "｡ﾟ\uFFFD"}, {"iso-2022-jp", "\x1b(B\x1b(B", "\uFFFD"}, {"iso-2022-jp", "\x1b(Ba\x1b(Bb", "ab"},
		{"iso-2022-jp", "\x1b$B$\x1b(Ba", "\uFFFDa"}, {"iso-2022-jp", "\x1b$B$", "\uFFFD"}, {"iso-2022-jp", "\x1b$B$\n\"", "\uFFFD\uFFFD"},
		{"iso-2022-jp", "\x0ea\x80", "\uFFFDa\uFFFD"}, {"iso-2022-jp", "\x1b$(D0!", "\uFFFD$(D0!"}, {"iso-2022-jp", "\x1b$", "\uFFFD$"}, {"iso-2022-jp", "\x1b", "\uFFFD"},
		{"x-user-defined", "a\x80\xff", "a\uF780\uF7FF"},
	} {
		if got := decoded(t, c.name, []byte(c.bytes)); got != c.want {
			t.Errorf("%s: %q is %+q, want %+q", c.name, c.bytes, got, c.want)
		}
	}
	for p, r := range all["jis0208"][:94*94] {
		want := "\uFFFD"
		if r != 0 {
			want = string(r)
		}
		if got := decoded(t, "iso-2022-jp", []byte{0x1b, '$', 'B', byte(p/94 + 0x21), byte(p%94 + 0x21)}); got != want {
			t.Errorf("iso-2022-jp: pointer %d is %+q, want %+q", p, got, want)
		}
	}
	single := 0
	for name, index := range all {
		if len(index) != 128 {
			continue
		}
		single++
		for i, r := range index {
			want := "\uFFFD"
			if r != 0 {
				want = string(r)
			}
			for _, name := range append([]string{name}, map[string][]string{"iso-8859-8": {"iso-8859-8-i"}}[name]...) {
				if got := decoded(t, name, []byte{byte(0x80 + i)}); got != want {
					t.Errorf("%s: %x is %+q, want %+q", name, 0x80+i, got, want)
				}
			}
		}
	}
	if single != 27 {
		t.Errorf("%d encodings of one byte", single)
	}
}

// TestWritesAsTheStandard compares what each character becomes in each encoding.
func TestWritesAsTheStandard(t *testing.T) {
	all := indexes(t)
	first := func(index []rune, may func(p int) bool) map[rune]int {
		m := make(map[rune]int)
		for p, r := range index {
			if _, has := m[r]; r != 0 && !has && may(p) {
				m[r] = p
			}
		}
		return m
	}
	every := func(int) bool { return true }
	big5 := first(all["big5"], func(p int) bool { return p >= (0xA1-0x81)*157 })
	for p, r := range all["big5"] {
		if strings.ContainsRune("\u2550\u255E\u2561\u256A\u5341\u5345", r) {
			big5[r] = p
		}
	}
	two := func(p, row, low, gap int, lead func(int) int) []byte {
		c := p % row
		if gap > 0 && c >= 0x3F {
			c += gap - 0x40
		}
		return []byte{byte(lead(p / row)), byte(c + low)}
	}
	plus := func(n int) func(int) int { return func(row int) int { return row + n } }
	sjisLead := func(row int) int {
		if row < 0x1F {
			return row + 0x81
		}
		return row + 0xC1
	}
	japanese := func(r rune) rune { // half of what the three have in common
		if r == 0x2212 {
			return 0xFF0D
		}
		return r
	}
	four := first(all["gb18030-four"], every)
	gb, kr, jis0208 := first(all["gb18030"], every), first(all["euc-kr"], every), first(all["jis0208"], every)
	sjis := first(all["jis0208"], func(p int) bool { return p < 8272 || p > 8835 })
	writers := map[string]func(r rune) []byte{
		"big5": func(r rune) []byte {
			if p, ok := big5[r]; ok {
				return two(p, 157, 0x40, 0x62, plus(0x81))
			}
			return nil
		},
		"euc-kr": func(r rune) []byte {
			if p, ok := kr[r]; ok {
				return two(p, 190, 0x41, 0, plus(0x81))
			}
			return nil
		},
		"shift_jis": func(r rune) []byte {
			switch {
			case r == 0x80:
				return []byte{0x80}
			case r == 0xA5:
				return []byte{0x5C}
			case r == 0x203E:
				return []byte{0x7E}
			case r >= 0xFF61 && r <= 0xFF9F:
				return []byte{byte(r - 0xFF61 + 0xA1)}
			}
			if p, ok := sjis[japanese(r)]; ok {
				return two(p, 188, 0x40, 0x41, sjisLead)
			}
			return nil
		},
		"euc-jp": func(r rune) []byte {
			switch {
			case r == 0xA5:
				return []byte{0x5C}
			case r == 0x203E:
				return []byte{0x7E}
			case r >= 0xFF61 && r <= 0xFF9F:
				return []byte{0x8E, byte(r - 0xFF61 + 0xA1)}
			}
			if p, ok := jis0208[japanese(r)]; ok {
				return two(p, 94, 0xA1, 0, plus(0xA1))
			}
			return nil
		},
		"gb18030": func(r rune) []byte {
			if b, ok := oldGB[r]; ok {
				return []byte{byte(b >> 8), byte(b)}
			}
			if r == 0xE5E5 {
				return nil
			}
			if p, ok := gb[r]; ok {
				return two(p, 190, 0x40, 0x41, plus(0x81))
			}
			if r >= 0x10000 {
				return fourBytes(189000 + int(r) - 0x10000)
			}
			if p, ok := four[r]; ok {
				return fourBytes(p)
			}
			return nil
		},
		"gbk": func(r rune) []byte {
			if b, ok := oldGB[r]; ok {
				return []byte{byte(b >> 8), byte(b)}
			}
			if r == 0x20AC {
				return []byte{0x80}
			}
			if p, ok := gb[r]; ok && r != 0xE5E5 {
				return two(p, 190, 0x40, 0x41, plus(0x81))
			}
			return nil
		},
		"iso-2022-jp": func(r rune) []byte {
			switch {
			case r == 0xA5:
				return []byte("\x1b(J\\\x1b(B")
			case r == 0x203E:
				return []byte("\x1b(J~\x1b(B")
			case r >= 0xFF61 && r <= 0xFF9F:
				r = []rune("。「」、・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン゛゜")[r-0xFF61]
			}
			if p, ok := jis0208[japanese(r)]; ok {
				return fmt.Appendf([]byte("\x1b$B"), "%s\x1b(B", two(p, 94, 0x21, 0, plus(0x21)))
			}
			return nil
		},
	}
	for name, index := range all {
		if len(index) == 128 {
			by := first(index, every)
			writers[name] = func(r rune) []byte {
				if p, ok := by[r]; ok {
					return []byte{byte(0x80 + p)}
				}
				return nil
			}
		}
	}
	for name, write := range writers {
		enc, _ := Lookup(name)
		to, wrong := enc.NewEncoder().Transformer, 0
		for r := rune(0x80); r <= utf8.MaxRune; r++ {
			if r >= 0xD800 && r < 0xE000 {
				continue
			}
			to.Reset()
			var buf [16]byte
			n, used, err := to.Transform(buf[:], []byte(string(r)), true)
			want := write(r)
			if got := buf[:n]; !bytes.Equal(got, want) || (err != nil) != (want == nil) || (used == 0) != (want == nil) {
				if wrong++; wrong < 10 {
					t.Errorf("%s: %U is written %x (%v), want %x", name, r, got, err, want)
				}
			}
		}
		if wrong > 0 {
			t.Errorf("%s: %d characters", name, wrong)
		}
	}
}
