// Package manual compares the READMEs with the programs that they describe. Tests use it:
// those of cmd/fetcher and cmd/frontier compare the tables of cmd/README.md with
// --help, and its own tests run the commands of all READMEs.
//
// The commands are the lines of blocks that begin with ```sh. A comment that begins
// with "needs" begins a command that the tests only parse, and names what it needs.
package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Update names the variable of the environment that has Compare write the tables.
const Update = "SEINE_UPDATE"

// Compare compares the tables of a program with those of the file, and reports flags
// and verbs without an example there. A table stands behind a line
// <!-- PROGRAM TABLE --> and ends with an empty line.
func Compare(t *testing.T, path, program string, tables map[string]string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for name, table := range tables {
		head := fmt.Sprintf("<!-- %s %s -->\n", program, name)
		before, rest, found := strings.Cut(text, head)
		current, after, ended := strings.Cut(rest, "\n\n")
		switch {
		case !found || !ended:
			t.Errorf("%s lacks the line %q before a table", path, head)
		case os.Getenv(Update) != "":
			text = before + head + table + "\n" + after
		case current+"\n" != table:
			t.Errorf("%s: the table %q differs from --help; run this test with %s=1, which writes it:\n%s", path, name, Update, table)
		}
	}
	if text != string(data) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Join(commands(text), "\n") + "\n"
	for name, table := range tables {
		for row := range strings.Lines(table) {
			cells := quoted.FindAllStringSubmatch(row, 3)
			if len(cells) == 0 {
				continue
			}
			want := "bin/" + program
			if strings.HasPrefix(name, "of ") {
				want += " " + cells[0][1]
			}
			if name == "verbs" {
				verb, _, _ := strings.Cut(strings.NewReplacer(" <", "\x00", " [", "\x00").Replace(cells[0][1]), "\x00")
				want += " " + verb
			} else {
				flag, _, _ := strings.Cut(strings.ReplaceAll(cells[len(cells)-1][1], "[no-]", ""), " ")
				if !strings.HasPrefix(name, "of ") {
					want = `bin/\w+`
				}
				want += `\b.* ` + flag
			}
			if !regexp.MustCompile(`(?m)\b` + want + `([\s=]|$)`).MatchString(lines) {
				t.Errorf("%s has no example of %s", path, want)
			}
		}
	}
}

// quoted is code at the beginning of a cell: a verb or a flag.
var quoted = regexp.MustCompile("\\| `([^`]*)`")

// commands are the lines of the blocks of a document that are commands, as one where
// a line ends with \.
func commands(text string) []string {
	var lines []string
	for _, block := range blocks(text) {
		for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", " ")) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// blocks are the blocks of commands of a document.
func blocks(text string) (found []string) {
	for {
		_, rest, ok := strings.Cut(text, "\n```sh\n")
		if !ok {
			return found
		}
		block, after, _ := strings.Cut(rest, "\n```")
		found = append(found, block+"\n")
		text = "\n" + after
	}
}

// Documents are the READMEs of the project, by their path in it.
func Documents(root string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "bin" || name == "testdata" || name == "target") {
			return filepath.SkipDir
		}
		if d.Name() == "README.md" {
			rel, err := filepath.Rel(root, path)
			found = append(found, rel)
			return err
		}
		return nil
	})
	return found, err
}
