package fetch

import (
	"strings"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	bad := Config{
		UserAgent: "a\r\nb", MaxBody: -1, ReadTimeout: -time.Second, ConnectTo: []string{"x"},
		Proxies:     []string{"ftp://h", "http://u:secret@", "http://u:secret@h:99999", "http://u:secret@h/p", "http://u:secret@h:p"},
		AcceptTypes: []string{"html"}, CAFile: "/no/such/file",
	}
	err := bad.Validate()
	if err == nil {
		t.Fatal("all is wrong with it")
	}
	for _, want := range []string{"UserAgent", "MaxBody", "ReadTimeout", `rule "x"`, "proxy 1", "proxy 2", "proxy 3", "proxy 4", "proxy 5", `"html"`, "CA file"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not named in %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "secret") {
		t.Error("a password is shown")
	}
	for _, line := range strings.Split(err.Error(), "\n") {
		if !strings.HasPrefix(line, "fetch: ") {
			t.Errorf("%q", line)
		}
	}
	if _, err := New(bad); err == nil {
		t.Error("made all the same")
	}
	if err := (&Config{}).Validate(); err != nil {
		t.Error(err)
	}
}
