package sign

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

const testAgent = "https://signature-agent.test" + WellKnown

// The draft, appendix E.2.3.
func TestDirectoryVector(t *testing.T) {
	d, err := NewDirectory([]*Key{testKey(t)}, testAgent)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U","x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs","use":"sig"}]}`
	if got := string(d.Body()); got != want {
		t.Errorf("body %s, want %s", got, want)
	}
	got := map[string]string{}
	for _, f := range d.Fields(time.Unix(1735689605, 0), (4889289600-1735689605)*time.Second) {
		got[f[0]] = f[1]
	}
	for name, want := range map[string]string{
		"Content-Type":    "application/http-message-signatures-directory+json",
		"Content-Digest":  "sha-256=:CADMT2aBdV/rqQr/NIru64ERQkCobVvllA4V0fLFDu0=:",
		"Signature-Input": `binding1=("@authority";req "content-digest");created=1735689600;expires=4889289600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";tag="http-message-signatures-directory"`,
		"Signature":       "binding1=:l6P8R67tm3kujAxbHWio7ll01qrEZ0dKD/WWlGhNYEmTnFZM8Wt0VQ9zqGfvo7T/UMkBxsigzChM1Gpz7gOVBg==:",
	} {
		if got[name] != want {
			t.Errorf("%s: %s, want %s", name, got[name], want)
		}
	}
}

// answer is what a directory serves.
func answer(t testing.TB, keys []*Key, url string, now time.Time, valid time.Duration) *Answer {
	t.Helper()
	d, err := NewDirectory(keys, url)
	if err != nil {
		t.Fatal(err)
	}
	a := &Answer{URL: url, Status: 200, Header: http.Header{}, Body: d.Body()}
	for _, f := range d.Fields(now, valid) {
		a.Header.Set(f[0], f[1])
	}
	return a
}

func TestDirectory(t *testing.T) {
	k := newKey(t)
	if _, err := NewDirectory(nil, testAgent); err == nil {
		t.Error("a directory without a key")
	}
	if _, err := NewDirectory([]*Key{k, newKey(t), k}, testAgent); err == nil {
		t.Error("a directory with a key twice")
	}
	now := time.Now()
	for _, url := range []string{testAgent, "https://bot.example:8443/keys.json?v=1", "https://Bot.Example:443" + WellKnown} {
		other := newKey(t)
		listed, err := Check(answer(t, []*Key{k, other}, url, now, DirectoryAge), now)
		if err != nil {
			t.Errorf("%s: %v", url, err)
		}
		if len(listed) != 2 || listed[0].ID != k.ID() || listed[1].ID != other.ID() || listed[1].Expires.Unix() != now.Add(DirectoryAge).Unix() {
			t.Errorf("%s: keys %v", url, listed)
		}
	}
}

// The vector of the draft, as others made it, holds for the checker too.
func TestCheckVector(t *testing.T) {
	a := answer(t, []*Key{testKey(t)}, testAgent, time.Unix(1735689605, 0), time.Hour)
	a.Header.Set("Signature-Input", `binding0=("@authority";req "content-digest");created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires=4889289600;tag="http-message-signatures-directory"`)
	a.Header.Set("Signature", "binding0=:yiHq0TXrbpzbmlttAQMpYoAufitFJUWuNsakB7QQMoN0EHbo5o51bZRVR8az/ptTWCwllix9clrKXfGKwdPzBg==:")
	if _, err := Check(a, time.Unix(1800000000, 0)); err != nil {
		t.Error(err)
	}
}

// Each fault is named, and nothing else.
func TestCheckFaults(t *testing.T) {
	k, now := newKey(t), time.Unix(1800000000, 0)
	set := func(change func(map[string]any)) func(*Answer) {
		return func(a *Answer) {
			var set map[string][]map[string]any
			if err := json.Unmarshal(a.Body, &set); err != nil {
				t.Fatal(err)
			}
			change(set["keys"][0])
			a.Body, _ = json.Marshal(set)
			a.Header.Set("Content-Digest", digestOf(a.Body))
		}
	}
	header := func(name, from, to string) func(*Answer) {
		return func(a *Answer) {
			v := a.Header.Get(name)
			if from == "" {
				a.Header.Del(name)
			} else if !strings.Contains(v, from) {
				t.Fatalf("%s has no %s", v, from)
			}
			if from != "" {
				a.Header.Set(name, strings.ReplaceAll(v, from, to))
			}
		}
	}
	for _, c := range []struct {
		name   string
		change func(*Answer)
		want   string
	}{
		{"status", func(a *Answer) { a.Status = 404 }, "status 404"},
		{"redirect", func(a *Answer) { a.Status = 301 }, "follows no redirect"},
		{"URL", func(a *Answer) { a.URL = "http://bot.example/" }, "https"},
		{"media type", header("Content-Type", MediaType, "application/json"), "Content-Type is"},
		{"no media type", header("Content-Type", "", ""), "Content-Type is"},
		{"other host", func(a *Answer) { a.URL = "https://other.example" + WellKnown }, "does not hold for host other.example"},
		{"no JSON", func(a *Answer) { a.Body = []byte("<html>") }, "no JWK set"},
		{"no keys", func(a *Answer) { a.Body = []byte("{}") }, "no key of Ed25519"},
		{"changed body", func(a *Answer) { a.Body = append(a.Body, '\n') }, "not that of the body"},
		{"private half", set(func(k map[string]any) { k["d"] = "secret" }), "private half"},
		{"kid", set(func(k map[string]any) { k["kid"] = "mine" }), "must be its thumbprint"},
		{"x", set(func(k map[string]any) { k["x"] = "AAAA" }), "x is not 32 bytes"},
		{"not yet", set(func(k map[string]any) { k["nbf"] = now.Unix() + 1 }), "not valid before"},
		{"over", set(func(k map[string]any) { k["exp"] = now.Unix() }), "expired at"},
		{"no digest", header("Content-Digest", "", ""), "has no sha-256"},
		{"no digest that parses", header("Content-Digest", ":", "("), "does not parse"},
		{"no input", header("Signature-Input", "", ""), "no signature of key"},
		{"no input that parses", header("Signature-Input", "(", "(("), "does not parse"},
		{"no signature", header("Signature", "", ""), "no bytes under"},
		{"other tag", header("Signature-Input", directoryTag, requestTag), "no signature of key"},
		{"other key", header("Signature-Input", k.ID(), testID), "no signature of key"},
		{"no request", header("Signature-Input", ";req", ""), "without req"},
		{"authority not covered", header("Signature-Input", `"@authority";req `, ""), "does not cover \"@authority\""},
		{"digest not covered", header("Signature-Input", ` "content-digest"`, ""), "does not cover content-digest"},
		{"unknown component", header("Signature-Input", `"content-digest"`, `"content-digest" "@status"`), "not read here"},
		{"twice", header("Signature-Input", `"content-digest"`, `"content-digest" "content-digest"`), "comes twice"},
		{"other algorithm", header("Signature-Input", ";tag", `;alg="rsa-pss-sha512";tag`), "algorithm"},
		{"no time", header("Signature-Input", ";expires", ";until"), "must be there"},
		{"other times", header("Signature-Input", ";created=1799999995", ";created=1799999994"), "does not hold"},
	} {
		a := answer(t, []*Key{k}, agent, now, time.Hour)
		c.change(a)
		if _, err := Check(a, now); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	for at, want := range map[time.Time]string{now.Add(-time.Minute): "still to come", now.Add(time.Hour): "expired at"} {
		if _, err := Check(answer(t, []*Key{k}, agent, now, time.Hour), at); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("at %s: %v, want %q", at, err, want)
		}
	}
}

// Whatever is served, the checker answers, and no key passes without its signature.
func FuzzCheck(f *testing.F) {
	now := time.Unix(1800000000, 0)
	good := answer(f, []*Key{testKey(f)}, agent, now, time.Hour)
	f.Add(good.Body, good.Header.Get("Content-Digest"), good.Header.Get("Signature-Input"), good.Header.Get("Signature"))
	f.Add([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":""}]}`), "sha-256=::", `a=("@authority";req)`, "a=1")
	f.Fuzz(func(t *testing.T, body []byte, digest, input, signature string) {
		a := &Answer{URL: agent, Status: 200, Body: body, Header: http.Header{"Content-Type": {MediaType}, "Content-Digest": {digest}, "Signature-Input": {input}, "Signature": {signature}}}
		listed, err := Check(a, now)
		if err == nil && len(listed) == 0 {
			t.Error("a directory without keys passes")
		}
		for _, l := range listed {
			if err == nil && l.Expires.Before(now) {
				t.Errorf("%s passes without a signature that holds", l.ID)
			}
		}
	})
}
