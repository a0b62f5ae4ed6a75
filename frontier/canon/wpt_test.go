package canon

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"seine/extract/charset"
)

// unguarded is a parser that refuses nothing that is a URL.
func unguarded() *Parser {
	return NewParser(Config{MaxLength: -1, MaxSegments: -1, MaxRepeats: -1, MaxArgs: -1})
}

// urlRow is a row of the web platform's urltestdata.json.
type urlRow struct {
	Input   string
	Base    *string
	Href    string
	Failure bool
}

// hostRow is a row of toascii.json and IdnaTestV2.json.
type hostRow struct {
	Comment string
	Input   string
	Output  *string
}

// rows reads a JSON list of rows between comments.
func rows[T any](t *testing.T, file string) (list []T) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		t.Fatal(err)
	}
	for _, m := range raw {
		if len(m) > 0 && m[0] == '{' {
			var row T
			if err := json.Unmarshal(m, &row); err != nil {
				t.Fatalf("%s: %s: %v", file, m, err)
			}
			list = append(list, row)
		}
	}
	if len(list) == 0 {
		t.Fatalf("%s holds no rows", file)
	}
	return list
}

// shared returns a file of the test data beside the repository, or skips.
func shared(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
	file := filepath.Join(dir, "..", "shared", "testdata", name)
	if _, err := os.Stat(file); err != nil {
		t.Skipf("NOT TESTED: %s is absent; the module's own rows are tested in its place", name)
	}
	return file
}

// module returns a file inside the URL library's module.
func module(t *testing.T, name string) string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/nlnwa/whatwg-url").Output()
	if err != nil || len(dir) == 0 {
		t.Skipf("NOT TESTED: the library's module is not at hand: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "testdata", name)
}

// superseded says that an old row was overtaken: since 2025 the standard does
// not look into labels of "xn--" in hosts that are ASCII throughout, and since
// Unicode 16 some characters are mapped that were forbidden.
func superseded(host string) bool {
	if isASCII([]byte(host)) {
		return strings.Contains(strings.ToLower(host), "xn--")
	}
	return strings.Map(remap, host) != host
}

// unknown says that a host holds a character that this program's Unicode
// tables do not know yet; domains of such are refused.
func unknown(host string) bool {
	return strings.ContainsFunc(host, func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.Cc, unicode.Cf, unicode.Co)
	})
}

func TestURLRows(t *testing.T) {
	t.Run("shared", func(t *testing.T) {
		checkURLRows(t, rows[urlRow](t, shared(t, "url/urltestdata.json")), func(urlRow) bool { return false })
	})
	t.Run("module", func(t *testing.T) {
		checkURLRows(t, rows[urlRow](t, module(t, "urltestdata.json")), func(r urlRow) bool {
			return r.Failure && superseded(r.Input)
		})
	})
}

func checkURLRows(t *testing.T, list []urlRow, skip func(urlRow) bool) {
	p, crawlable := unguarded(), 0
	for _, r := range list {
		var base, u URL
		var from *URL // stays nil where the base is of another scheme: no page of ours
		if r.Base != nil && p.Parse(&base, []byte(*r.Base)) == nil {
			from = &base
		}
		if skip(r) {
			continue
		}
		err := p.Resolve(&u, from, []byte(r.Input), nil)
		want, _, _ := strings.Cut(r.Href, "#")
		http := strings.HasPrefix(want, "http://") || strings.HasPrefix(want, "https://")
		switch {
		case r.Failure && err == nil:
			t.Errorf("%q on %v: %s, want an error", r.Input, from, u.Fetch())
		case !r.Failure && !http && !errors.Is(err, ErrNotCrawlable) && (from != nil || r.Base == nil || err == nil):
			t.Errorf("%q: error %v, want ErrNotCrawlable", r.Input, err)
		case !r.Failure && http && (err != nil || string(u.Fetch()) != want):
			t.Errorf("%q: %s %v, want %s", r.Input, u.Fetch(), err, want)
		case http:
			crawlable++
		}
	}
	t.Logf("%d rows of http and https", crawlable)
	if crawlable < 220 {
		t.Errorf("only %d rows of http and https", crawlable)
	}
}

func TestHostRows(t *testing.T) {
	for _, name := range []string{"toascii.json", "IdnaTestV2.json"} {
		t.Run("shared/"+name, func(t *testing.T) {
			checkHostRows(t, rows[hostRow](t, shared(t, "url/"+name)), func(r hostRow) bool {
				return r.Output != nil && unknown(r.Input)
			})
		})
		t.Run("module/"+name, func(t *testing.T) {
			checkHostRows(t, rows[hostRow](t, module(t, name)), func(r hostRow) bool {
				return r.Output == nil && superseded(r.Input)
			})
		})
	}
}

func checkHostRows(t *testing.T, list []hostRow, skip func(hostRow) bool) {
	p := unguarded()
	for _, r := range list {
		if r.Input == "" || skip(r) {
			continue
		}
		host := p.domain(r.Input)
		if r.Output == nil {
			if host != "" {
				t.Errorf("%+q (%s): %s, want an error", r.Input, r.Comment, host)
			}
			continue
		}
		if host != *r.Output {
			t.Errorf("%+q (%s): %q, want %s", r.Input, r.Comment, host, *r.Output)
		}
		var u URL
		if err := p.Parse(&u, []byte("https://"+r.Input+"/x")); err != nil || string(u.Host()) != *r.Output {
			t.Errorf("%+q (%s) in a URL: %s %v, want %s", r.Input, r.Comment, u.Host(), err, *r.Output)
		}
	}
}

func TestQueryEncodingRows(t *testing.T) {
	type row struct {
		Input  string
		Output map[string]string
	}
	p := unguarded()
	for _, r := range rows[row](t, shared(t, "url/percent-encoding.json")) {
		for label, want := range r.Output {
			enc, _ := charset.Lookup(label)
			if enc == nil {
				t.Fatal(label)
			}
			var u URL
			if err := p.Resolve(&u, nil, []byte("http://a/?"+r.Input+"#f"), enc); err != nil || string(u.Query()) != want {
				t.Errorf("%+q in %s: %s %v, want %s", r.Input, label, u.Query(), err, want)
			}
		}
	}
}
