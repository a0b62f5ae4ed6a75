package extract

import (
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	_ "codeberg.org/readeck/go-readability/v2" // for its test pages
	_ "github.com/mmcdole/gofeed"              // for its fixtures
)

// page is one document of the corpus.
type page struct {
	name string
	body []byte
}

// moduleDir is where the go command keeps a module.
func moduleDir(t testing.TB, path string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", path).Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		t.Skipf("SKIPPED: no source of module %s here (%v); run: go mod download %s", path, err, path)
	}
	return dir
}

// pages reads all files below dir whose name matches, in order.
func pages(t testing.TB, dir string, match func(name string) bool) []page {
	t.Helper()
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("SKIPPED: %v; install the package that brings it", err)
	}
	var all []page
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !match(path) {
			return err
		}
		body, err := readFile(path)
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		all = append(all, page{name, body})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if !strings.HasSuffix(path, ".gz") {
		return io.ReadAll(f)
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

func isHTML(name string) bool {
	return strings.HasSuffix(name, ".html") || strings.HasSuffix(name, ".html.gz")
}

// corpora are the document sets that the scanner is held against.
var corpora = []struct {
	name string
	load func(testing.TB) []page
}{
	{"readability", func(t testing.TB) []page {
		return pages(t, filepath.Join(moduleDir(t, "codeberg.org/readeck/go-readability/v2"), "test-pages"), isHTML)
	}},
	{"gofeed", func(t testing.TB) []page {
		return pages(t, filepath.Join(moduleDir(t, "github.com/mmcdole/gofeed"), "testdata"), func(name string) bool {
			return strings.HasSuffix(name, ".xml")
		})
	}},
	{"python", func(t testing.TB) []page { return pages(t, "/usr/share/doc/python3.11/html", isHTML) }},
	{"postgresql", func(t testing.TB) []page { return pages(t, "/usr/share/doc/postgresql-doc-15/html", isHTML) }},
}

var loaded sync.Map // corpus name -> []page

// corpus returns the pages of one corpus, read once; it skips when they are
// not there.
func corpus(t testing.TB, i int) []page {
	t.Helper()
	if p, ok := loaded.Load(i); ok {
		return p.([]page)
	}
	p := corpora[i].load(t)
	loaded.Store(i, p)
	return p
}
