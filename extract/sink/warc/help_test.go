package warc

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"seine/extract/sink"
	"seine/extract/sink/frame"
	"seine/extract/sink/sinktest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(sinktest.VictimEnv); dir != "" {
		victim(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

func open(t testing.TB, cfg Config) *Sink {
	t.Helper()
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// put writes records and waits until they are in the sink.
func put(t testing.TB, s *Sink, records ...*sink.Record) {
	t.Helper()
	done := make(chan error, len(records))
	for _, r := range records {
		s.Write(r, func(err error) { done <- err })
	}
	for range records {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

func shut(t testing.TB, s *Sink) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// files are the names of a directory, open ones too.
func files(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// block is a record as the plainest of readers sees it.
type block struct {
	fields map[string]string
	body   []byte
}

// blocks reads all records of files, of which each has to be a frame of its own.
func blocks(t testing.TB, paths ...string) (all []block) {
	t.Helper()
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range frames(t, strings.TrimSuffix(p, frame.OpenEnd), data) {
			head, rest, ok := bytes.Cut(text, []byte("\r\n\r\n"))
			lines := strings.Split(string(head), "\r\n")
			if !ok || lines[0] != "WARC/1.1" || !bytes.HasSuffix(rest, []byte("\r\n\r\n")) {
				t.Fatalf("%s: no record: %.300q", p, text)
			}
			b := block{map[string]string{}, rest[:len(rest)-4]}
			for _, l := range lines[1:] {
				name, value, ok := strings.Cut(l, ": ")
				if !ok {
					t.Fatalf("%s: no field: %q", p, l)
				}
				b.fields[name] = value
			}
			all = append(all, b)
		}
	}
	return all
}

func frames(t testing.TB, path string, data []byte) (all [][]byte) {
	t.Helper()
	if strings.HasSuffix(path, ".zst") {
		for len(data) > 0 {
			var h zstd.Header
			if err := h.Decode(data); err != nil {
				t.Fatal(err)
			}
			end := zstdLen(data)
			z, _ := zstd.NewReader(nil)
			text, err := z.DecodeAll(data[:end], nil)
			z.Close()
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			all, data = append(all, text), data[end:]
		}
		return all
	}
	src := bytes.NewReader(data)
	for src.Len() > 0 {
		z, err := gzip.NewReader(src)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		z.Multistream(false)
		text, err := io.ReadAll(z)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, text)
	}
	return all
}

// zstdLen is the length of the first frame: the shortest piece that decodes.
func zstdLen(data []byte) int {
	next := bytes.Index(data[4:], []byte{0x28, 0xb5, 0x2f, 0xfd})
	for at := 4; next >= 0; next = bytes.Index(data[at:], []byte{0x28, 0xb5, 0x2f, 0xfd}) {
		z, _ := zstd.NewReader(nil)
		_, err := z.DecodeAll(data[:at+next], nil)
		z.Close()
		if err == nil {
			return at + next
		}
		at += next + 4
	}
	return len(data)
}

// recordOf is the record in metadata.
func recordOf(t testing.TB, b block) (r sink.Record) {
	t.Helper()
	_, line, ok := strings.Cut(string(b.body), "\r\nrecord: ")
	if !ok || json.Unmarshal([]byte(strings.TrimSuffix(line, "\r\n")), &r) != nil {
		t.Fatalf("no record in %q", b.body)
	}
	return r
}
