package boot

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFieldRules(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seine.yaml")
	read := func(text string) (int, error) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		set, err := FieldRules(path)
		if set == nil {
			return 0, err
		}
		return len(set.Counts()), err
	}
	for text, want := range map[string]int{
		"concurrency: 3\n":                0,
		"fields: [body, text]\n":          0,
		"fields: body\n":                  0,
		"fields:\n- name: a\n  css: h1\n": 1,
		"x: 1\nfields:\n  - body\n  - {name: price, site: '*.shop.example', jsonld: Product/offers.price, type: number, required: true}\n  - name: all\n    css: li\n    all: true\n": 2,
	} {
		if n, err := read(text); n != want || err != nil {
			t.Errorf("%q: %d rules, %v", text, n, err)
		}
	}
	for text, want := range map[string]string{
		"fields:\n- name: a\n  css: h1\n- name: b\n  css: 'h['\n": `seine.yaml:4: rule of "b": css`,
		"fields:\n- body\n\n- name: a\n  cs: h1\n":                `seine.yaml:4: `,
		"fields:\n- name: a\n  css: h1\n  at: x\n":                `unknown field "at"`,
		"fields:\n- 3\n": `seine.yaml:2: this is neither`,
		"fields:\n- name: a\n  css: h1\n  all: maybe\n": `seine.yaml:2: `,
		"fields: [\n": `seine.yaml`,
	} {
		if _, err := read(text); err == nil || !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if set, err := FieldRules(""); set != nil || err != nil {
		t.Error(set, err)
	}
	// Names of fields in the file are a flag's values, rules are not.
	if err := os.WriteFile(path, []byte("fields:\n- body\n- name: a\n  css: h1\n- text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := loadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if list, ok := f.values["fields"].([]any); !ok || len(list) != 2 || list[1] != "text" {
		t.Errorf("%v", f.values["fields"])
	}
}
