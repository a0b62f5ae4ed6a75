package manual

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"seine/extract/sink"
)

// texts are the READMEs by name, with their code blocks taken out.
func texts(t *testing.T) map[string]string {
	t.Helper()
	root := filepath.Join("..", "..", "..")
	docs, err := Documents(root)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, doc := range docs {
		data, err := os.ReadFile(filepath.Join(root, doc))
		if err != nil {
			t.Fatal(err)
		}
		found[doc] = fenced.ReplaceAllString(string(data), "\n")
	}
	if len(found) < 7 {
		t.Fatalf("%d READMEs", len(found))
	}
	return found
}

var fenced = regexp.MustCompile("(?ms)^```.*?^```$")

// longest is how many words a sentence may have.
const longest = 25

// private are words that no other project uses so.
var private = regexp.MustCompile(`(?i)\b(lend|lends|lent|lending|borrow\w*|told|standing|fate|tally|mended|mend|mends|aside|asker|asking)\b`)

var (
	inline   = regexp.MustCompile("`[^`]*`")
	link     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	brackets = regexp.MustCompile(`\([^()]*\)`)
	sentence = regexp.MustCompile(`[.:;?!]["')*]*(\s+|$)`)
)

// Sentences are short, and words are those of the field. Code does not count: a name
// is one word, and lists in brackets are left out.
func TestPlainWords(t *testing.T) {
	for doc, text := range texts(t) {
		text = brackets.ReplaceAllString(link.ReplaceAllString(inline.ReplaceAllString(text, "CODE"), "$1"), "")
		for _, m := range private.FindAllString(text, -1) {
			t.Errorf("%s says %q", doc, m)
		}
		var parts []string // paragraphs, list items, cells
		for line := range strings.Lines(text) {
			trimmed := strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(trimmed, "|"):
				parts = append(parts, strings.Split(trimmed, "|")...)
			case trimmed == "" || strings.HasPrefix(trimmed, "- ") || strings.HasPrefix(trimmed, "#"):
				parts = append(parts, trimmed)
			case len(parts) > 0:
				parts[len(parts)-1] += " " + trimmed
			default:
				parts = append(parts, trimmed)
			}
		}
		for _, part := range parts {
			for _, s := range sentence.Split(part, -1) {
				if n := len(strings.Fields(s)); n > longest {
					t.Errorf("%s: a sentence of %d words: %s", doc, n, s)
				}
			}
		}
	}
}

// The front page is short, and every README lists its own sections at its top.
func TestContents(t *testing.T) {
	heading := regexp.MustCompile(`(?m)^## (.+)$`)
	slug := regexp.MustCompile(`[^a-z0-9 _-]`)
	for doc, text := range texts(t) {
		if doc == "README.md" {
			if data, err := os.ReadFile(filepath.Join("..", "..", "..", doc)); err != nil || strings.Count(string(data), "\n") > 250 {
				t.Errorf("%s has %d lines: %v", doc, strings.Count(string(data), "\n"), err)
			}
		}
		head, _, _ := strings.Cut(text, "\n## ")
		var want strings.Builder
		for _, m := range heading.FindAllStringSubmatch(text, -1) {
			want.WriteString("- [" + m[1] + "](#" + strings.ReplaceAll(slug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-") + ")\n")
		}
		if want.Len() == 0 || !strings.Contains(head+"\n", want.String()) {
			t.Errorf("%s does not list its sections:\n%s", doc, want.String())
		}
	}
}

// The table of one URL's way names each file once, and each is there.
func TestWay(t *testing.T) {
	_, section, _ := strings.Cut(texts(t)["README.md"], "\n## One URL's way through the code\n")
	section, _, _ = strings.Cut(section, "\n\nImports run")
	seen := make(map[string]bool)
	for _, m := range regexp.MustCompile("`([\\w/.]+\\.(?:go|lua))`").FindAllStringSubmatch(section, -1) {
		if seen[m[1]] {
			t.Errorf("%s is there twice", m[1])
		}
		seen[m[1]] = true
		if _, err := os.Stat(filepath.Join("..", "..", "..", m[1])); err != nil {
			t.Error(err)
		}
	}
	if len(seen) < 15 {
		t.Errorf("%d files", len(seen))
	}
}

// README lists the packages with tests that only make check runs: those that look at
// testing.Short.
func TestLongTests(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	_, section, _ := strings.Cut(texts(t)["README.md"], "\n| only in `make check` |")
	section, _, _ = strings.Cut(section, "\n\n")
	listed := make(map[string]bool)
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z/]+)`").FindAllStringSubmatch(section, -1) {
		listed[m[1]] = true
	}
	found := make(map[string]bool)
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "text_test.go" {
			return err
		}
		text, err := os.ReadFile(path)
		if dir, _ := filepath.Rel(root, filepath.Dir(path)); strings.Contains(string(text), "testing.Short()") {
			found[dir] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(found, listed) {
		t.Errorf("README lists %v, such tests have %v", slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(found)))
	}
}

// Every field of a record is described.
func TestRecordFields(t *testing.T) {
	_, section, _ := strings.Cut(texts(t)[filepath.Join("extract", "sink", "README.md")], "\n## Records\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for field := range reflect.TypeFor[sink.Record]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && name != "-" && !strings.Contains(section, "`"+name+"`") {
			t.Errorf("extract/sink/README.md lacks the field %s", name)
		}
	}
}
