package metric_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLinks: what the documents link to is there, file and heading.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]+))?\)`)
	heading := regexp.MustCompile(`(?m)^#+ (.+)$`)
	noSlug := regexp.MustCompile(`[^a-z0-9 _-]`)
	n := 0
	for _, doc := range []string{"README.md", "bench/README.md", "cmd/README.md", "deploy/README.md", "extract/sink/README.md", "fetch/crawl/README.md", "frontier/README.md"} {
		doc = filepath.Join("../../..", doc)
		for _, m := range link.FindAllStringSubmatch(read(t, doc), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			n++
			to := filepath.Join(filepath.Dir(doc), m[1])
			if m[1] == "" {
				to = doc
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s: %v", doc, m[0], err)
			}
			if m[2] == "" {
				continue
			}
			found := false
			for _, h := range heading.FindAllStringSubmatch(read(t, to), -1) {
				found = found || strings.ReplaceAll(noSlug.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-") == m[2]
			}
			if !found {
				t.Errorf("%s links to %s, and there is no such heading", doc, m[0])
			}
		}
	}
	if n < 40 {
		t.Errorf("%d links", n)
	}
}
