package frontier

import (
	"strings"
	"testing"
)

func TestWithCredentials(t *testing.T) {
	kept, _ := AddCredentials("", "https://a.example", "u:p")
	kept, _ = AddCredentials(kept, "https://a.example:8443", "v")
	for url, want := range map[string]string{
		"https://a.example/":           "https://u:p@a.example/",
		"https://a.example/x@y?z://":   "https://u:p@a.example/x@y?z://",
		"https://a.example:8443/x":     "https://v@a.example:8443/x",
		"http://a.example/":            "http://a.example/",
		"https://a.example.com/":       "https://a.example.com/",
		"https://www.a.example/":       "https://www.a.example/",
		"https://other:w@a.example/":   "https://other:w@a.example/",
		"https://a.example:844/":       "https://a.example:844/",
		"https://@a.example/":          "https://@a.example/",
		"https://a.example@b.example/": "https://a.example@b.example/",
	} {
		if got := WithCredentials(url, kept); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}

// Seeds give their credentials to their origin; a link keeps those in its URL to
// itself, unless it says otherwise.
func TestCredentialsOfElements(t *testing.T) {
	m := NewMaker(Layout{Shards: 2}.Complete())
	for text, want := range map[string][2]string{
		"https://u:p%40@a.example/x":                                           {"https://a.example/x", "u:p%40"},
		`{"url":"https://u@a.example/x","depth":3}`:                            {"https://a.example/x", "u"},
		`{"url":"https://u@a.example/x","sitemap":true}`:                       {"https://a.example/x", "u"},
		`{"url":"https://u@a.example/x","seed":false}`:                         {"https://u@a.example/x", ""},
		`{"url":"https://u@a.example/x","redirects":1}`:                        {"https://u@a.example/x", ""},
		`{"url":"https://u@a.example/x","seed":false,"keep_credentials":true}`: {"https://a.example/x", "u"},
		"https://a.example/x":                                                  {"https://a.example/x", ""},
	} {
		it, err := m.Element(text)
		if err != nil || it.URL != want[0] || it.Credentials != want[1] {
			t.Errorf("%s: %s %q %v", text, it.URL, it.Credentials, err)
		}
		again, err := m.Element(string(AppendElement(nil, &it.Candidate)))
		if err != nil || again.URL != it.URL || again.Credentials != it.Credentials || again.Seed != it.Seed {
			t.Errorf("%s, written and read: %+v %v", text, again, err)
		}
	}
	room := CredentialBytes - len("https://a.example") - 2
	for n, ok := range map[int]bool{room: true, room + 1: false} {
		if _, err := m.Element("https://" + strings.Repeat("u", n) + "@a.example/"); (err == nil) != ok {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}
