package boot

import (
	"bytes"

	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding/unicode"
)

// What people keep lists of URLs in is read, or refused by line, never joined
// and never changed.
func TestListsOfURLs(t *testing.T) {
	utf16 := func(order unicode.Endianness, s string) string {
		b, err := unicode.UTF16(order, unicode.UseBOM).NewEncoder().String(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	long := strings.Repeat("http://a.example/\r", maxLine/4)
	for _, c := range []struct{ name, in, want string }{
		{"comment after a URL", "http://a.example/#x # one\nhttp://a.example/2\t#two\n #http://n.example/\nhttp://a.example/3 #", "http://a.example/#x|http://a.example/2|http://a.example/3"},
		{"space inside", "http://a.example/1 http://a.example/2\nhttp://a.example/a b # c\nhttp://a.example/3", "1!space|2!space|http://a.example/3"},
		{"json", `{"url":"http://a.example/ # x", "depth":1}`, `{"url":"http://a.example/ # x", "depth":1}`},
		{"CR", "http://a.example/1\rhttp://a.example/2\r\rhttp://a.example/3\r\n\r\nhttp://a.example/4 b\r", "http://a.example/1|http://a.example/2|http://a.example/3|6!space"},
		{"much of it", long, strings.TrimSuffix(strings.ReplaceAll(long, "\r", "|"), "|")},
		{"UTF-16", utf16(unicode.LittleEndian, "http://a.example/\u00e4\r\n# x\r\nhttp://a.example/\U0001F600"), "http://a.example/\u00e4|http://a.example/\U0001F600"},
		{"UTF-16BE", utf16(unicode.BigEndian, "http://a.example/1\nhttp://a.example/2\n"), "http://a.example/1|http://a.example/2"},
		{"UTF-16 without mark", utf16(unicode.LittleEndian, "http://a.example/1\n")[2:], "1!NUL|2!NUL"},
		{"UTF-16 broken", "\xff\xfeh\x00\x00\xd8i\x00\n\x00x\x00\n\x00", "1!UTF-8|x"},
		{"Latin-1", "http://a.example/\xe4\nhttp://a.example/2", "1!UTF-8|http://a.example/2"},
		{"UTF-8 mark", "\ufeffhttp://a.example/1", "http://a.example/1"},
		{"N53.txt", "", "https://example.com/11"},
		{"N54.txt", "", "https://example.com/1"},
	} {
		if c.in == "" {
			path := "../../../../shared/testdata/webcases/" + c.name
			b, err := os.ReadFile(path)
			if err != nil {
				t.Skipf("SKIPPED: %v; the shared inputs are not here", err)
			}
			c.in = string(b)
		}
		var got []string
		err := (&SeedFlags{File: []string{"-"}}).Each(t.Context(), iotest.OneByteReader(strings.NewReader(c.in)), func(where, text string, err error) error {
			if err != nil {
				why := map[error]string{errSpace: "space", errNUL: "NUL", errUTF8: "UTF-8"}[err]
				text = strings.TrimPrefix(where, "stdin:") + "!" + why
			}
			got = append(got, text)
			return nil
		})
		if s := strings.Join(got, "|"); s != c.want || err != nil {
			t.Errorf("%s: got %.300q, %v, want %.300q", c.name, s, err, c.want)
		}
	}
}

func TestLines(t *testing.T) {
	text := "\ufeff# seeds\nhttp://a.example/\r\n\n  http://b.example/#x  \n" + strings.Repeat("y", 3*maxLine) + "\nno-end"
	var gz, zst bytes.Buffer
	g := gzip.NewWriter(&gz)
	g.Write([]byte(text[:20]))
	g.Close()
	g.Reset(&gz) // a second member
	g.Write([]byte(text[20:]))
	g.Close()
	z, err := zstd.NewWriter(&zst)
	if err != nil {
		t.Fatal(err)
	}
	z.Write([]byte(text))
	z.Close()
	dir := t.TempDir()
	var paths []string
	for i, content := range []string{text, gz.String(), zst.String()} {
		path := filepath.Join(dir, fmt.Sprint(i)) // known by content, not by name
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	s := SeedFlags{Seed: []string{" http://s.example/ "}, File: append(paths, "-")}
	var got []string
	err = s.Each(t.Context(), strings.NewReader("http://in.example/"), func(where, text string, err error) error {
		got = append(got, fmt.Sprint(strings.TrimPrefix(where, dir+"/"), " ", text, " ", err))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"--seed 1 http://s.example/ <nil>"}
	for i := range 3 {
		for _, line := range []string{"2 http://a.example/ <nil>", "4 http://b.example/#x <nil>", "5  line is longer than 256 KB, which no URL and no element is", "6 no-end <nil>"} {
			want = append(want, fmt.Sprintf("%d:%s", i, line))
		}
	}
	want = append(want, "stdin:1 http://in.example/ <nil>")
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestLinesThatBreakOff(t *testing.T) {
	var gz bytes.Buffer
	g := gzip.NewWriter(&gz)
	g.Write([]byte("http://a.example/\nhttp://b.example/\n"))
	g.Close()
	s := SeedFlags{File: []string{"-"}}
	for _, c := range []struct {
		cut, lines int
		want       string
	}{{6, 2, "stdin cannot be read beyond line 2"}, {14, 1, "stdin cannot be read beyond line 1"}} {
		var got []string
		err := s.Each(t.Context(), bytes.NewReader(gz.Bytes()[:gz.Len()-c.cut]), func(_, text string, _ error) error {
			got = append(got, text)
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), c.want) || len(got) != c.lines {
			t.Errorf("cut by %d: %q, %v", c.cut, got, err)
		}
		for _, text := range got {
			if !strings.HasSuffix(text, ".example/") {
				t.Errorf("half a line is taken for a URL: %q", text)
			}
		}
	}
	if err := (&SeedFlags{File: []string{"/nowhere"}}).Each(t.Context(), nil, nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	stop := errors.New("stop")
	if err := (&SeedFlags{Seed: []string{"a", "b"}}).Each(t.Context(), nil, func(string, string, error) error { return stop }); err != stop {
		t.Error(err)
	}
}

// late is a context that ends as soon as somebody waited.
type late struct{ context.Context }

func (late) Err() error { return ErrSignal }

// A file that is open when the signal comes is read; whoever takes its lines ends it.
func TestStopAfterOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "urls")
	if err := os.WriteFile(path, []byte("http://a.example/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got string
	err := (&SeedFlags{File: []string{path}}).Each(late{t.Context()}, nil, func(_, text string, _ error) error {
		got = text
		return nil
	})
	if err != nil || got != "http://a.example/" {
		t.Errorf("read %q, %v", got, err)
	}
}

// The last frame is found wherever the buffer ends.
func TestLastFrame(t *testing.T) {
	for at := maxLine - 6; at < maxLine+6; at++ {
		b := append(bytes.Clone(zstdMagic), make([]byte, 2*maxLine)...)
		copy(b[at:], zstdMagic)
		if got, err := lastFrame(bytes.NewReader(b)); err != nil || got != int64(at) {
			t.Errorf("at %d: %d, %v", at, got, err)
		}
	}
	if got, err := lastFrame(strings.NewReader("(")); err != nil || got != 0 {
		t.Errorf("none: %d, %v", got, err)
	}
}

// A file whose writer was killed is read up to its last whole frame, wherever
// it was cut, and the files after one that cannot be read are read too.
func TestLinesOfUnfinishedFiles(t *testing.T) {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	first := z.EncodeAll([]byte("http://a.example/\nhttp://b.example/\n"), nil)
	whole := z.EncodeAll([]byte(strings.Repeat("http://c.example/\nhttp://d.example/\n", 3)), bytes.Clone(first))
	dir, inDamage := t.TempDir(), false
	read := func(name string, content []byte) (urls, torn int, err error) {
		path, after := filepath.Join(dir, name), filepath.Join(dir, "after")
		for p, b := range map[string][]byte{path: content, after: []byte("http://after.example/\n")} {
			if err := os.WriteFile(p, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := SeedFlags{File: []string{path, after}}
		err = s.Each(t.Context(), nil, func(where, text string, fault error) error {
			switch {
			case errors.Is(fault, ErrTorn):
				torn++
			case inDamage && fault == errUTF8:
			case fault != nil || !strings.HasSuffix(text, ".example/"):
				t.Errorf("%s: %q, %v", where, text, fault)
			default:
				urls++
			}
			return nil
		})
		return urls, torn, err
	}
	for cut := range len(whole) + 1 {
		urls, torn, err := read("x.jsonl.zst.open", whole[:cut])
		least := 1
		if cut >= len(first) {
			least += 2
		}
		if err != nil || urls < least || (torn == 1) == (cut == len(whole) || cut == len(first) || cut < 4) {
			t.Errorf("cut at %d of %d: %d URLs, %d torn, %v", cut, len(whole), urls, torn, err)
		}
	}
	// A machine that lost power may leave zeros.
	if urls, torn, err := read("x.jsonl.zst.open", append(bytes.Clone(first), make([]byte, 50)...)); err != nil || urls != 3 || torn != 1 {
		t.Errorf("zeros: %d URLs, %d torn, %v", urls, torn, err)
	}
	// A frame that others follow was whole once: its lines are lost, which must be reported.
	inDamage = true // what is read of that frame before its checksum may be no UTF-8
	for at := len(zstdMagic); at < len(first); at++ {
		damaged := bytes.Clone(whole)
		damaged[at] ^= 0xff
		if urls, torn, err := read("x.jsonl.zst.open", damaged); err == nil || urls < 1 || torn != 0 {
			t.Errorf("byte %d of %d damaged: %d URLs, %d torn, %v", at, len(first), urls, torn, err)
		}
	}
	inDamage = false
	if urls, torn, err := read("x.jsonl.zst", whole[:len(whole)-1]); err == nil || urls < 3 || torn != 0 {
		t.Errorf("a finished file that is torn: %d URLs, %d torn, %v", urls, torn, err)
	}
}
