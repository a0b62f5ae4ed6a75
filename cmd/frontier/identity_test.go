package main

import (
	"bufio"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seine/fetch/sign"
)

// makeKey makes a key with the program, and returns its file and name.
func makeKey(t *testing.T, d *operator, dir, name string) (file, id string) {
	t.Helper()
	file = filepath.Join(dir, name)
	return file, strings.TrimSpace(d.ok("identity --new " + file))
}

// A key is made once, for its owner alone, and its text is nowhere else.
func TestIdentityKey(t *testing.T) {
	t.Parallel()
	d := &operator{t: t, addr: "127.0.0.1:1"} // Redis is not asked
	file, id := makeKey(t, d, t.TempDir(), "key.pem")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if key, err := sign.ParseKey(text); err != nil || key.ID() != id {
		t.Errorf("%v, %v; printed %q", key, err, id)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Error(st.Mode(), err)
	}
	d.refused(2, "identity --new "+file, "exists")
	if again, err := os.ReadFile(file); err != nil || string(again) != string(text) {
		t.Error("the key was overwritten")
	}
	var made struct{ File, KeyID string }
	other := filepath.Join(filepath.Dir(file), "other.pem")
	if d.json(&made, "identity --new "+other); made.File != other || len(made.KeyID) != 43 {
		t.Errorf("%+v", made)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, errs := d.run("identity", "--sign-key", file, "--signature-agent", "https://bot.example/keys")
	if code != 0 || !strings.Contains(errs, "chmod 600") || !strings.Contains(errs, file) {
		t.Errorf("code %d: %s", code, errs)
	}
	secret := strings.Split(string(text), "\n")[1]
	if strings.Contains(out+errs, secret) {
		t.Error("the key is shown")
	}
}

// Wrong flags and keys are refused, and the file is named.
func TestIdentityRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := &operator{t: t, addr: "127.0.0.1:1"}
	file, _ := makeKey(t, d, dir, "key.pem")
	bad := filepath.Join(dir, "bad.pem")
	if err := os.WriteFile(bad, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("offenesgeheimnis")}), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := " --signature-agent https://bot.example/keys"
	for flags, want := range map[string]string{
		"":                                  "needs one of",
		"--serve 0":                         "--sign-key",
		"--new x --check https://a/":        "call of its own",
		"--page --new x":                    "call of its own",
		"--sign-key " + file:                "signature-agent",
		"--sign-key " + bad + agent:         bad,
		"--sign-key " + dir + "/no" + agent: dir + "/no",
		"--sign-key " + file + " --sign-key " + file + agent:                "twice",
		"--sign-key " + file + " --signature-agent http://bot.example/keys": "https://",
		"--sign-key " + file + " --signature-agent https://bot.example":     sign.WellKnown,
		"--sign-key " + file + agent + " --for 1s":                          "at least",
		"--sign-key " + file + agent + " --serve x":                         "serve is",
		"--page --contact javascript:alert(1)":                              "contact is",
		"--page --robots-agent a/b":                                         "robots-agent is",
		"--check http://bot.example/":                                       "https://",
	} {
		d.refused(2, "identity "+flags, want)
	}
}

// What is printed is an answer that a verifier takes, with both keys of a rotation, for as
// long as it says.
func TestIdentityPrints(t *testing.T) {
	t.Parallel()
	d := &operator{t: t, addr: "127.0.0.1:1"}
	dir := t.TempDir()
	old, oldID := makeKey(t, d, dir, "old.pem")
	next, nextID := makeKey(t, d, dir, "next.pem")
	agent := "https://bot.example" + sign.WellKnown
	out := d.ok("identity --sign-key " + old + " --sign-key " + next + " --for 48h --signature-agent " + agent)
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader("HTTP/1.1 200 OK\n"+out)), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := &sign.Answer{URL: agent, Status: 200, Header: resp.Header, Body: body}
	now := time.Now()
	for at, ok := range map[time.Time]bool{now: true, now.Add(47 * time.Hour): true, now.Add(49 * time.Hour): false} {
		if keys, err := sign.Check(a, at); (err == nil) != ok || len(keys) != 2 || keys[0].ID != oldID || keys[1].ID != nextID {
			t.Errorf("%v: %v, %v", at, keys, err)
		}
	}
	var printed struct {
		Headers [][2]string
		Body    string
	}
	if d.json(&printed, "identity --sign-key "+old+" --signature-agent "+agent); len(printed.Headers) != 5 || !strings.Contains(printed.Body, oldID) {
		t.Errorf("%+v", printed)
	}
}

// A directory that is served through a proxy which speaks TLS passes the check, at each of
// its URLs; for another host nobody gets signatures.
func TestIdentityServes(t *testing.T) {
	t.Parallel()
	d := &operator{t: t, addr: "127.0.0.1:1"}
	dir := t.TempDir()
	file, id := makeKey(t, d, dir, "key.pem")
	var to *url.URL
	front := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httputil.NewSingleHostReverseProxy(to).ServeHTTP(w, r)
	}))
	defer front.Close()
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	check := " --allow-net 127.0.0.0/8 --ca " + ca
	for _, path := range []string{sign.WellKnown, "/keys.json", "/a/{b}/", "/"} {
		agent := front.URL + path
		addr := d.serve("identity", "--serve", "127.0.0.1:0", "--page", "--contact", "bot@bot.example", "--sign-key", file, "--signature-agent", agent)
		to = &url.URL{Scheme: "http", Host: addr}
		d.ok("identity --check "+agent+check, "key "+id+" signs until ")
		var found checked
		if d.json(&found, "identity --check "+front.URL+check); len(found.Keys) != 1 || len(found.Faults) != 0 {
			t.Errorf("%+v", found)
		}
		other := strings.Replace(agent, "127.0.0.1", "127.0.0.2", 1)
		code, out, errs := d.run(strings.Fields("identity --check " + other + check)...)
		if code != 1 {
			t.Errorf("for another host: code %d: %s%s", code, out, errs)
		}
		if code, text := page(t, "http://"+addr+"/"); path != "/" && (code != 200 || !strings.Contains(text, `href="mailto:bot@bot.example"`) || !strings.Contains(text, id)) {
			t.Errorf("the page at %s: %d, %s", addr, code, text)
		}
		if code, _ := page(t, "http://"+addr+"/else"); code != 404 {
			t.Errorf("another path answers %d", code)
		}
	}
}

// The check says what is wrong with what is served.
func TestIdentityCheck(t *testing.T) {
	t.Parallel()
	d := &operator{t: t, addr: "127.0.0.1:1"}
	dir := t.TempDir()
	front := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/", http.StatusFound)
		case "/large":
			fmt.Fprint(w, strings.Repeat(" ", sign.MaxDirectory+1))
		default:
			fmt.Fprint(w, `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"}]}`)
		}
	}))
	defer front.Close()
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/moved":       "follows no redirect",
		"/large":       "larger than",
		"/keys":        "no signature that holds",
		sign.WellKnown: "Content-Type is",
	} {
		code, out, errs := d.run("identity", "--check", front.URL+path, "--allow-net", "127.0.0.0/8", "--ca", ca)
		if code != 1 || !strings.Contains(out+errs, want) {
			t.Errorf("%s: code %d, %s%s", path, code, out, errs)
		}
	}
	if code, _, errs := d.run("identity", "--check", front.URL+"/keys", "--ca", ca); code != 1 || !strings.Contains(errs, "guard") {
		t.Errorf("a private address: code %d, %s", code, errs)
	}
}

// The page says what it is given, and markup in it is text.
func TestIdentityPage(t *testing.T) {
	t.Parallel()
	d := &operator{t: t, addr: "127.0.0.1:1"}
	code, out, errs := d.run("identity", "--page", "--operator", "A & <b>B</b>", "--about", "<script>x</script>", "--robots-agent", "MyBot",
		"--contact", "https://bot.example/who", "--address", "192.0.2.0/24", "--address", "2001:db8::/32")
	if code != 0 {
		t.Fatal(errs)
	}
	for _, want := range []string{"A &amp; &lt;b&gt;B", "&lt;script&gt;", "User-agent: MyBot\nDisallow: /", `href="https://bot.example/who"`, "192.0.2.0/24", "2001:db8::/32"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "RFC 9421") {
		t.Error("it says that requests are signed, and no key is given")
	}
	d.ok("identity --page", "User-agent: seine", "Its addresses change.")
}
