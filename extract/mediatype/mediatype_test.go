package mediatype

import "testing"

func TestExtract(t *testing.T) {
	for v, want := range map[string][2]string{
		"":                                                  {"", ""},
		"*/*":                                               {"", ""},
		"text/html":                                         {"text/html", ""},
		" TEXT/HTML ;charset=X ":                            {"text/html", "X"},
		"text /html":                                        {"", ""},
		"text/ html":                                        {"", ""},
		"text;/html":                                        {"", ""},
		"text/html;charset":                                 {"text/html", ""},
		"text/html;charset=":                                {"text/html", ""},
		"text/html;charset=;charset=b":                      {"text/html", "b"},
		"text/html;charset=a;charset=b":                     {"text/html", "a"},
		"text/html; foo bar; charset=a":                     {"text/html", "a"},
		"text/html;charset =a;charset=b":                    {"text/html", "b"},
		"text/html;charset= a":                              {"text/html", "a"},
		"text/html;charset='a'":                             {"text/html", "'a'"},
		"text/html;charset=\x01;charset=b":                  {"text/html", "b"},
		`text/html;charset="utf\-8"`:                        {"text/html", "utf-8"},
		`text/html;charset=" utf-8 "`:                       {"text/html", "utf-8"},
		`text/html;charset="utf-8`:                          {"text/html", "utf-8"},
		`text/html;charset="utf-8\`:                         {"text/html", `utf-8\`},
		`text/html;charset="";charset=b`:                    {"text/html", ""}, // an empty value in quotes is one
		`text/html;charset="a"b;charset=c`:                  {"text/html", "a"},
		`text/html;a=";charset=b";charset=c`:                {"text/html", "c"},
		"text/html;charset=windows-1257,text/html":          {"text/html", "windows-1257"},
		"text/html;charset=windows-1257, text/html;":        {"text/html", "windows-1257"},
		"text/html;charset=a,text/html;charset=b":           {"text/html", "b"},
		"text/html;charset=a,text/html;charset=b,text/html": {"text/html", "a"}, // as the standard's steps have it
		"text/html,text/html;charset=b,text/html":           {"text/html", ""},
		"text/html;charset=a,text/plain,text/html":          {"text/html", ""},
		"text/html;charset=a,*/*;charset=b":                 {"text/html", "a"},
		"text/html;charset=a,x":                             {"text/html", "a"},
		`text/html;a="\",";charset=b, text/plain`:           {"text/plain", ""},
		`text/html;a=",text/plain`:                          {"text/html", ""},
		`text/html;",text/plain`:                            {"text/html", ""},
	} {
		if essence, charset := Extract(v); essence != want[0] || charset != want[1] {
			t.Errorf("%q: %q %q, want %q", v, essence, charset, want)
		}
	}
}
