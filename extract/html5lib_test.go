package extract

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// row is one test of the tree construction suite of html5lib.
type row struct {
	data, document string
	fragment       bool
	scripting      bool
}

func readRows(text string) []row {
	var rows []row
	var r *row
	section := ""
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "# ") {
			switch name := line[1:]; name {
			case "data":
				rows = append(rows, row{})
				r = &rows[len(rows)-1]
				section = name
				continue
			case "errors", "new-errors", "document", "document-fragment", "script-on", "script-off":
				section = name
				r.fragment = r.fragment || name == "document-fragment"
				r.scripting = r.scripting || name == "script-on"
				continue
			}
		}
		switch section {
		case "data":
			r.data += line + "\n"
		case "document":
			r.document += line + "\n"
		}
	}
	for i := range rows {
		rows[i].data = strings.TrimSuffix(rows[i].data, "\n")
	}
	return rows
}

// readTree collects the links of a tree in the suite's notation.
func readTree(document string) map[string]bool {
	o := oracle{found: map[string]bool{}}
	var node *html.Node
	depth, template := 0, -1
	flush := func() {
		if node != nil {
			o.element(node)
		}
		node = nil
	}
	for line := range strings.SplitSeq(document, "\n") {
		text, ok := strings.CutPrefix(line, "| ")
		if !ok {
			continue
		}
		trimmed := strings.TrimLeft(text, " ")
		indent := (len(text) - len(trimmed)) / 2
		if template >= 0 && indent > template {
			continue
		}
		switch {
		case strings.HasPrefix(trimmed, "<!"):
			flush()
		case strings.HasPrefix(trimmed, "<") && strings.HasSuffix(trimmed, ">"):
			flush()
			template = -1
			node, depth = &html.Node{Type: html.ElementNode}, indent
			space, name, found := strings.Cut(strings.Trim(trimmed, "<>"), " ")
			if node.Data = space; found {
				node.Namespace, node.Data = space, name
			} else if name := space; name == "template" {
				template = indent
				node = nil
			}
		case node != nil && indent == depth+1 && strings.Contains(trimmed, `="`) && !strings.HasPrefix(trimmed, `"`):
			key, val, _ := strings.Cut(trimmed, `="`)
			a := html.Attribute{Key: key, Val: strings.TrimSuffix(val, `"`)}
			if space, name, ok := strings.Cut(key, " "); ok {
				a.Namespace, a.Key = space, name
			}
			node.Attr = append(node.Attr, a)
		default:
			flush()
		}
	}
	flush()
	return o.found
}

// html5libDifferences are the rows that are read otherwise, and why.
var html5libDifferences = map[string]string{}

// Rows whose tree holds a link, of the suite that golang.org/x/net carries.
func TestTreeConstructionRows(t *testing.T) {
	dir := filepath.Join(moduleDir(t, "golang.org/x/net"), "html", "testdata")
	files, _ := filepath.Glob(filepath.Join(dir, "*", "*", "*.dat"))
	more, _ := filepath.Glob(filepath.Join(dir, "*", "*.dat"))
	rows := 0
	for _, file := range append(files, more...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range readRows(string(text)) {
			want := readTree(r.document)
			if len(want) == 0 || r.fragment || r.scripting {
				continue
			}
			rows++
			got := map[string]bool{}
			s := NewScanner(Config{Kinds: elementKinds})
			s.Reset(Doc{ContentType: "text/html; charset=utf-8"}, func(l *Link) { got[l.Kind.String()+" "+string(l.Raw)] = true })
			s.Write([]byte(r.data))
			s.Close()
			if a, b := strings.Join(sorted(got), "\n"), strings.Join(sorted(want), "\n"); a != b && html5libDifferences[r.data] == "" {
				t.Errorf("%s: %q:\ngot\n%s\nwant\n%s", filepath.Base(file), r.data, a, b)
			}
		}
	}
	if rows == 0 {
		t.Fatalf("no rows in %s", dir)
	}
	t.Logf("%d rows", rows)
}

// Attributes of the tokenizer suite's start tags, read as the href of a link.
func TestTokenizerRows(t *testing.T) {
	dir := filepath.Join(moduleDir(t, "golang.org/x/net"), "html", "testdata", "html5lib-tests", "tokenizer")
	files, _ := filepath.Glob(filepath.Join(dir, "*.test"))
	tag := regexp.MustCompile(`<h a\b`)
	rows := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var suite struct {
			Tests []struct {
				Input         string
				Output        []any
				DoubleEscaped bool
				InitialStates []string
			}
		}
		if err := json.Unmarshal(text, &suite); err != nil {
			t.Fatal(err)
		}
		for _, r := range suite.Tests {
			if r.DoubleEscaped || r.InitialStates != nil || !tag.MatchString(r.Input) {
				continue
			}
			var want []string
			for _, o := range r.Output {
				token, _ := o.([]any)
				if len(token) < 3 || token[0] != "StartTag" || token[1] != "h" {
					continue
				}
				if v, ok := token[2].(map[string]any)["a"]; ok {
					want = append(want, "a "+v.(string))
				}
			}
			rows++
			body := tag.ReplaceAllString(r.Input, "<a href")
			if got, _ := scanLinks(t, Config{}, benchDoc, body, 0); strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%s: %q: got %q, want %q", filepath.Base(file), r.Input, got, want)
			}
		}
	}
	if rows < 10 {
		t.Errorf("%d rows in %s", rows, dir)
	}
	t.Logf("%d rows", rows)
}
