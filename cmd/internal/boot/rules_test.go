package boot

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"seine/fetch/wall"
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
		"fields: [\n":     `seine.yaml`,
		"fields:\n- {}\n": `seine.yaml:2: rule`,
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

// oneHeader is that which the example of the manual looks for.
type oneHeader struct{}

func (oneHeader) Field(i int) (name, value []byte) {
	if i > 0 {
		return nil, nil
	}
	return []byte("X-Acme"), []byte("block")
}

func TestWallRules(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seine.yaml")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	judge := func(path string, status int, body string) wall.Verdict {
		set, err := WallRules(path)
		if err != nil {
			t.Fatal(err)
		}
		return set.Judge(new(wall.Scratch), status, nil, []byte(body))
	}
	write("concurrency: 3\nwall_rules:\n  - vendor: acme\n    sure: certain\n    status: [403, 429]\n    body: ['<title>Acme gate']\n  - {vendor: other, header: ['x-gate: on']}\n")
	if v := judge(path, 403, "<title>ACME gate</title>"); v != (wall.Verdict{Vendor: "acme", Sure: wall.Certain}) {
		t.Error(v)
	}
	if v := judge(path, 200, "<title>acme gate</title>"); v != (wall.Verdict{}) {
		t.Error(v)
	}
	manual, err := os.ReadFile(filepath.Join("..", "..", "..", "fetch", "crawl", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(manual), "```yaml\nwall_rules:")
	example, _, _ = strings.Cut(example, "```")
	write("wall_rules:" + example)
	set, err := WallRules(path)
	if err != nil {
		t.Fatal(err)
	}
	if v := set.Judge(new(wall.Scratch), 429, oneHeader{}, []byte("<title>Acme gate")); v != (wall.Verdict{Vendor: "acme", Sure: wall.Certain}) {
		t.Error("the example of the manual:", v)
	}
	if v := judge("", 429, "<title>Vercel Security Checkpoint</title>"); v.Vendor != "vercel" {
		t.Error(v)
	}
	write("concurrency: 3\nwall_rules: []\n")
	if f, err := loadFile(path); err != nil || f.values["concurrency"] == nil || f.values[wallKey] != nil {
		t.Errorf("%v, %v", f, err)
	}
	for text, want := range map[string]string{
		"wall_rules:\n- vendor: acme\n  header: [x-a]\n- vendor: Acme\n  header: [x-a]\n": `seine.yaml:4: rule of "Acme": vendor`,
		"wall-rules:\n- vendor: acme\n\n- vendor: b\n  header: [x-a]\n":                   `seine.yaml:2: rule of "acme": there must be a header or a body mark`,
		"wall_rules:\n- vendor: acme\n  sure: maybe\n  header: [x-a]\n":                   `seine.yaml:2: `,
		"wall_rules:\n- vendor: acme\n  heder: [x-a]\n":                                   `unknown field "heder"`,
		"wall_rules:\n- vendor: acme\n  source: x\n  header: [x-a]\n":                     `unknown field "source"`,
		"wall_rules:\n- acme\n": `seine.yaml:2: this is no rule`,
		"wall_rules: [\n":       `seine.yaml`,
	} {
		write(text)
		if _, err := WallRules(path); err == nil || !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	write("wall_rules: acme\n")
	if _, err := loadFile(path); err == nil || !strings.Contains(err.Error(), "wall_rules must be a list") {
		t.Error(err)
	}
}

func TestSiteRulesNameTheirLine(t *testing.T) {
	for rule, want := range map[string]string{
		"bind: [nonsense]":                          `bind has "nonsense"`,
		"bind: [192.0.2.7/16]":                      "write 192.0.0.0/16",
		"bind: [0.0.0.0]":                           "nobody answers",
		"bind: 192.0.2.7":                           "bind is 192.0.2.7, must be a list",
		"user_agent: [a, b]":                        "user_agent is [a b], must be a text",
		`user_agent: "a\nb"`:                        "must be one line",
		"user_agent: x\n  headers: {User-Agent: y}": "two names",
		"auth: x":                                   "user:password",
	} {
		for list, line := range map[string]string{"sites:\n": ":4: ", "sites: &all\n": ":4: "} {
			path := write(t, list+"- match: b.example\n\n- match: a.example\n  "+rule+"\n")
			if _, err := loadFile(path); err == nil || !strings.Contains(err.Error(), "config: "+path+line+"sites: a.example: ") || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", rule, err, want)
			}
		}
	}
}

func TestKeysAreReadToABound(t *testing.T) {
	if _, err := ReadKey("/dev/zero"); !errors.Is(err, ErrUsage) {
		t.Error(err)
	}
}
