package robots

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// corpus is the folder of real files, found from the repository's root.
func corpus(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
			continue
		}
		data := filepath.Join(filepath.Dir(dir), "shared", "testdata", "robots")
		if _, err := os.Stat(data); err != nil {
			t.Skip("SKIPPED: no ../shared/testdata/robots beside the repository")
		}
		return data
	}
	t.Fatal("no go.mod above the test")
	return ""
}

func unzip(t testing.TB, path string) io.Reader {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	z, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// realFiles returns the corpus by name.
func realFiles(t testing.TB) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(unzip(t, filepath.Join(corpus(t), "files.tgz"))); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(h.Name)] = body
	}
}

// pathOf cuts scheme and host off a URL, and the fragment.
func pathOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	i := strings.IndexAny(rest, "/?#")
	if i < 0 {
		return "/"
	}
	path, _, _ := strings.Cut(rest[i:], "#")
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return path
}

// Google's own parser made these verdicts; every one must agree, also after a
// passage through the compact form.
func TestRealFiles(t *testing.T) {
	files := realFiles(t)
	parsed := map[[2]string]*Rules{}
	rows, wrong := 0, 0
	lines := bufio.NewScanner(unzip(t, filepath.Join(corpus(t), "verdicts.tsv.gz")))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		col := strings.Split(lines.Text(), "\t")
		if len(col) != 4 {
			t.Fatalf("row %d: %q", rows, lines.Text())
		}
		rows++
		id := [2]string{col[0], col[1]}
		r := parsed[id]
		if r == nil {
			body, ok := files[col[0]]
			if !ok {
				t.Fatalf("no file %s", col[0])
			}
			var err error
			if r, err = Load(Parse(body, col[1]).Append(nil)); err != nil {
				t.Fatal(err)
			}
			parsed[id] = r
		}
		path := []byte(pathOf(col[2]))
		if got := r.Allowed(path); got != (col[3] == "1") {
			if wrong++; wrong <= 20 {
				t.Errorf("%s for %s: %s allowed = %v, Google says %s: %+v", col[0], col[1], col[2], got, col[3], r.Explain(path))
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if rows < 100_000 {
		t.Errorf("only %d rows", rows)
	}
	t.Logf("%d rows, %d wrong, %d files", rows, wrong, len(files))
}
