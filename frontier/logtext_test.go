package frontier

import (
	"strings"
	"testing"
)

func TestShownHidesCredentials(t *testing.T) {
	for text, want := range map[string]string{
		"http://usr:pw@[bad/":                      `"http://xxxxx@[bad/"`,
		"http://token@[bad/":                       `"http://xxxxx@[bad/"`,
		"HTTP:/usr:p/w@x@[bad/":                    `"HTTP:/xxxxx@[bad/"`,
		`http:\\usr:pw@[bad`:                       `"http:\\\\xxxxx@[bad"`,
		"//usr:pw@h":                               `"//xxxxx@h"`,
		"usr:pw@host/":                             `"xxxxx@host/"`,
		"http:usr:pw@[bad":                         `"xxxxx@[bad"`,
		"ftp://usr:pw@h/":                          `"ftp://xxxxx@h/"`,
		"me@example.com":                           `"me@example.com"`,
		"http://[bad/@me":                          `"http://[bad/@me"`,
		"http://usr:pw@a b/x":                      `"http://xxxxx@a b/x"`,
		"http://h/a@b":                             `"http://h/a@b"`,
		"http://usr:pw@@h?":                        `"http://xxxxx@h?"`,
		"not a url":                                `"not a url"`,
		"\x00\x1b[31m\xff":                         `"\x00\x1b[31m\xff"`,
		`{"url":"http://usr:pw@[bad/","m":"me@x"}`: `"{\"url\":\"http://xxxxx@[bad/\",\"m\":\"me@x\"}"`,
		`{"url":"http:\/\/usr:p\"w\u0040[bad/"}`:   `"{\"url\":\"http:\\/\\/xxxxx@[bad/\"}"`,
		`{"url":"http://usr:pw@brea`:               `"{\"url\":\"http://xxxxx@brea"`,
		`{"url":"a","request":{"method":"POST","Header":[["X","token"]]},"a":"b"}`: `"{\"url\":\"a\",\"request\":{\"xxxxx\":\"xxxxx\",\"xxxxx\":[[\"xxxxx\",\"xxxxx\"]]},\"xxxxx\":\"xxxxx\"}"`,
		`{"h\u0065ader":[["X","tok`:                           `"{\"h\\u0065ader\":[[\"xxxxx\",\"xxxxx\""`,
		`{'url':'a','request':{'header':[['X','token']]}}`:    `"{'url':'a','request': xxxxx"`,
		`{"url":"a"","Header":[["X","token"]]}`:               `"{\"url\":\"a\"\",\"Header\": xxxxx"`,
		`[{"url":"http://u:p@a","request":{"body":"token"}}]`: `"xxxxx@a\",\"request\": xxxxx"`,
		`http://[bad/request`:                                 `"http://[bad/request"`,
		`{url: a, request: {header: [[X, token]]}}`:           `"{url: a, request: xxxxx"`,
		`"a" is a bad request: no`:                            `"\"a\" is a bad request: no"`,
		`"a" is no request`:                                   `"\"a\" is no request"`,
		"http://u:" + strings.Repeat("p", 500) + "@[x":        `"http://xxxxx@[x"`,
	} {
		if got := LogText(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestShownEntryHidesHeaders(t *testing.T) {
	e := Entry{URL: "http://a.example/", Request: must(t, "POST", [][2]string{{"X", "secret"}}, "")}
	entry := string(AppendEntry(nil, "a.example", &e))
	if text := LogText("9" + entry[1:]); !strings.Contains(text, "header") || strings.Contains(text, "secret") {
		t.Error(text)
	}
}

func TestShownIsBounded(t *testing.T) {
	for _, text := range []string{strings.Repeat("\x00", 1000), strings.Repeat("é", 1000), strings.Repeat(`"`, 1000)} {
		if got := LogText(text); len(got) > maxLogText || !strings.HasSuffix(got, `…"`) {
			t.Errorf("%d bytes: %s", len(got), got)
		}
	}
}
