package sign

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seine/extract/sink/sinktest"
)

// foreign is a message that a program of others verifies, or is to sign.
type foreign struct {
	URL     string            `json:"url"`
	Status  int               `json:"status,omitempty"` // 0: a request
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body,omitempty"`
	Keys    []jwk             `json:"keys"`
	Label   string            `json:"label"`
	Tag     string            `json:"tag"`
	Sign    bool              `json:"sign,omitempty"`

	bad bool // it must not pass
}

// node runs the script with the packages that scripts/setup installs, or skips the test.
func node(t *testing.T) []string {
	t.Helper()
	dir := os.Getenv("SEINE_NODE")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(cache, "seine", "node")
	}
	_, err := os.Stat(filepath.Join(dir, "node_modules", "web-bot-auth"))
	path, missing := exec.LookPath("node")
	if err == nil {
		err = missing
	}
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("SKIPPED, needs Node and its packages, see scripts/setup: ", err)
	}
	return []string{path, "testdata/verify.mjs", dir}
}

// result is what a program of others says of a message.
type result struct {
	OK      bool              `json:"ok"`
	Error   string            `json:"error"`
	Headers map[string]string `json:"headers"`
}

func ask(t *testing.T, command []string, messages []foreign) (all []result) {
	t.Helper()
	in, err := json.Marshal(messages)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err != nil || len(all) != len(messages) {
		t.Fatalf("%v: %d answers: %s", err, len(all), out)
	}
	return all
}

func jwkOf(k *Key) jwk {
	return jwk{Kty: "OKP", Crv: "Ed25519", Kid: k.ID(), X: publicX(k.Public()), Use: "sig"}
}

// signed are messages that verifiers must take, and some that they must not.
func signed(t *testing.T) (all []foreign) {
	first, second, now := newKey(t), newKey(t), time.Now()
	s := newSigner(t, first, agent)
	for url, authority := range map[string]string{
		"https://example.com/": "example.com", "https://example.com/a/b?c=d": "example.com", "http://example.com:8080/": "example.com:8080",
		"https://example.com:8443/": "example.com:8443", "http://[::1]:8080/x": "[::1]:8080", "https://xn--bcher-kva.example/": "xn--bcher-kva.example",
	} {
		req, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET / HTTP/1.1\r\nHost: x\r\n" + string(s.AppendFields(nil, authority, now)) + "\r\n")))
		if err != nil {
			t.Fatal(err)
		}
		m := foreign{URL: url, Headers: map[string]string{}, Keys: []jwk{jwkOf(second), jwkOf(first)}, Label: label, Tag: requestTag}
		for name := range req.Header {
			m.Headers[name] = req.Header.Get(name)
		}
		all = append(all, m)
		m.URL, m.bad = "https://example.org/", true
		all = append(all, m)
	}
	d, err := NewDirectory([]*Key{first, second}, agent)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"binding1", "binding2"} {
		m := foreign{URL: agent, Status: 200, Headers: map[string]string{}, Body: string(d.Body()), Label: name, Tag: directoryTag}
		for _, f := range d.Fields(now, time.Hour) {
			m.Headers[f[0]] = f[1]
		}
		var set struct {
			Keys []jwk `json:"keys"`
		}
		if err := json.Unmarshal(d.Body(), &set); err != nil {
			t.Fatal(err)
		}
		m.Keys = set.Keys
		all = append(all, m)
		m.URL, m.bad = "https://other.example"+WellKnown, true
		all = append(all, m)
	}
	return all
}

// What is signed here holds for two implementations of others, in two languages; and no
// other message does.
func TestOthersVerify(t *testing.T) {
	for _, c := range []struct {
		name    string
		command func(t *testing.T) []string
	}{
		{"web-bot-auth and http-message-sig of npm", node},
		{"http-message-signatures of PyPI", func(t *testing.T) []string { return []string{sinktest.Python(t), "testdata/verify.py"} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := signed(t)
			for i, r := range ask(t, c.command(t), all) {
				if r.OK == all[i].bad {
					t.Errorf("%s %s: passes: %v, %s", all[i].Label, all[i].URL, r.OK, r.Error)
				}
			}
		})
	}
}

// A directory that others signed passes here.
func TestOthersSign(t *testing.T) {
	k := newKey(t)
	a := answer(t, []*Key{k}, agent, time.Now(), time.Hour)
	private := jwkOf(k)
	private.D = base64.RawURLEncoding.EncodeToString(k.private.Seed())
	m := foreign{URL: agent, Status: 200, Headers: map[string]string{"Content-Digest": a.Header.Get("Content-Digest")}, Keys: []jwk{private}, Tag: directoryTag, Sign: true}
	made := ask(t, node(t), []foreign{m})[0]
	if !made.OK || made.Headers["Signature"] == a.Header.Get("Signature") {
		t.Fatal(made)
	}
	for name, v := range made.Headers {
		a.Header.Set(name, v)
	}
	if _, err := Check(a, time.Now()); err != nil {
		t.Error(err)
	}
}
