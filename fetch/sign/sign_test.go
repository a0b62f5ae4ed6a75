package sign

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
)

// The key of RFC 9421, appendix B.1.4.
const (
	testPEM = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n-----END PRIVATE KEY-----\n"
	testID  = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"
)

func testKey(t testing.TB) *Key {
	t.Helper()
	k, err := ParseKey([]byte(testPEM))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func newKey(t testing.TB) *Key {
	t.Helper()
	k, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func newSigner(t testing.TB, k *Key, agent string) *Signer {
	t.Helper()
	s, err := NewSigner(k, agent)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// RFC 8037, appendix A.3, and the draft's name of the key of RFC 9421.
func TestThumbprint(t *testing.T) {
	x, err := base64.RawURLEncoding.DecodeString("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := thumbprint(x), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"; got != want {
		t.Errorf("thumbprint %s, want %s", got, want)
	}
	if got := testKey(t).ID(); got != testID {
		t.Errorf("thumbprint %s, want %s", got, testID)
	}
}

// message is a request as vectors have it.
type message map[string]string

// value is a component of it.
func (m message) value(name string, params *httpsfv.Params) (string, error) {
	v, ok := m[name]
	if !ok {
		return "", fmt.Errorf("no %s", name)
	}
	key, ok := param[string](params, "key")
	if !ok {
		return v, nil
	}
	members, err := httpsfv.UnmarshalDictionary([]string{v})
	if err != nil {
		return "", err
	}
	member, ok := members.Get(key)
	if !ok {
		return "", fmt.Errorf("no member %s", key)
	}
	return httpsfv.Marshal(member)
}

// holds verifies what Signature and Signature-Input say of m.
func (m message) holds(public ed25519.PublicKey, input, signature string) error {
	inputs, err := httpsfv.UnmarshalDictionary([]string{input})
	if err != nil {
		return err
	}
	signatures, err := httpsfv.UnmarshalDictionary([]string{signature})
	if err != nil {
		return err
	}
	name := inputs.Names()[0]
	list, _ := inputs.Get(name)
	covered := list.(httpsfv.InnerList)
	base, err := signatureBase(&covered, m.value)
	if err != nil {
		return err
	}
	member, _ := signatures.Get(name)
	if !ed25519.Verify(public, base, member.(httpsfv.Item).Value.([]byte)) {
		return fmt.Errorf("no signature of:\n%s", base)
	}
	return nil
}

// RFC 9421, appendix B.2.6, and the draft, appendix E.2.
func TestVectors(t *testing.T) {
	public := testKey(t).Public()
	for _, c := range []struct {
		name, input, signature string
		m                      message
	}{
		{
			"RFC 9421 B.2.6",
			`sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"`,
			`sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:`,
			message{"date": "Tue, 20 Apr 2021 02:07:55 GMT", "@method": "POST", "@path": "/foo", "@authority": "example.com", "content-type": "application/json", "content-length": "18"},
		},
		{
			"draft E.2.1",
			`sig2=("@authority" "signature-agent";key="agent2");created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires=4889289600;nonce="n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==";tag="web-bot-auth"`,
			`sig2=:RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==:`,
			message{"@authority": "example.com", "signature-agent": `agent2="https://signature-agent.test"`},
		},
		{
			"draft E.2.2, the older form",
			`sig2=("@authority" "signature-agent");created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires=1735693200;nonce="e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg==";tag="web-bot-auth"`,
			`sig2=:jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKuHxUi/5Syp3rLWBA==:`,
			message{"@authority": "example.com", "signature-agent": `"https://signature-agent.test"`},
		},
	} {
		if err := c.m.holds(public, c.input, c.signature); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		c.m["@authority"] = "example.org"
		if c.m.holds(public, c.input, c.signature) == nil {
			t.Errorf("%s: it holds for another host", c.name)
		}
	}
}

const agent = "https://bot.example" + WellKnown

// What is signed is what the draft wants, and holds for one authority and a time.
func TestSigner(t *testing.T) {
	k, now := testKey(t), time.Unix(1735689605, 0)
	for _, authority := range []string{"example.com", "example.com:8443", "[::1]:8080", "xn--bcher-kva.example"} {
		text := "GET / HTTP/1.1\r\nHost: " + authority + "\r\n" + string(newSigner(t, k, agent).AppendFields(nil, authority, now)) + "\r\n"
		req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			t.Fatal(err, text)
		}
		if got, want := req.Header.Get("Signature-Agent"), `sig1="`+agent+`"`; got != want {
			t.Errorf("Signature-Agent: %s, want %s", got, want)
		}
		want := `sig1=("@authority" "signature-agent";key="sig1");created=1735689600;expires=1735689905;keyid="` + testID + `";tag="web-bot-auth"`
		if got := req.Header.Get("Signature-Input"); got != want {
			t.Errorf("Signature-Input: %s, want %s", got, want)
		}
		m := message{"@authority": authority, "signature-agent": req.Header.Get("Signature-Agent")}
		if err := m.holds(k.Public(), want, req.Header.Get("Signature")); err != nil {
			t.Error(err)
		}
		m["@authority"] += "x"
		if m.holds(k.Public(), want, req.Header.Get("Signature")) == nil {
			t.Error("it holds for another authority")
		}
	}
}

func TestSignerAllocates(t *testing.T) {
	s, dst, now := newSigner(t, testKey(t), agent), make([]byte, 0, 2048), time.Now()
	if n := testing.AllocsPerRun(100, func() { dst = s.AppendFields(dst[:0], "example.com", now) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func BenchmarkSigner(b *testing.B) {
	s, dst, now := newSigner(b, testKey(b), agent), make([]byte, 0, 2048), time.Now()
	b.ReportAllocs()
	for b.Loop() {
		dst = s.AppendFields(dst[:0], "www.example.com", now)
	}
}

func TestAgent(t *testing.T) {
	for _, text := range []string{"", "bot.example", "http://bot.example/keys", "https://", "https://user@bot.example/", "https://bot.example/#k",
		"https://bot.example", `https://bot.example/"`, `https://bot.example/\`, "https://bot.example/ü", "https://bot.example/a b", "https://bot.example/\r\nX: y"} {
		if _, err := NewSigner(testKey(t), text); err == nil {
			t.Errorf("%q is taken for a URL of keys", text)
		}
	}
}

// A key comes back from its PEM, and shows itself nowhere else.
func TestKey(t *testing.T) {
	k := newKey(t)
	text, err := k.PEM()
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseKey(text)
	if err != nil || back.ID() != k.ID() || !bytes.Equal(back.private, k.private) {
		t.Fatal(back, err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
		if got := fmt.Sprintf(verb, k); got != k.ID() {
			t.Errorf("%s of a key shows %s", verb, got)
		}
	}
	if got := fmt.Sprintf("%+v", struct{ Key *Key }{k}); got != "{Key:"+k.ID()+"}" {
		t.Errorf("a struct with a key shows %s", got)
	}
	signer, err := NewSigner(k, "https://example.com"+WellKnown)
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%d"} {
		if got := fmt.Sprintf(verb, signer); strings.Contains(got, strings.Trim(fmt.Sprint([]byte(k.private)[:4]), "[]")) {
			t.Errorf("%s of a signer shows its key: %s", verb, got)
		}
	}
}

func TestBadKeys(t *testing.T) {
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(other)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	secret := "n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU"
	for name, text := range map[string]string{
		"nothing": "", "no PEM": secret, "an older kind of PEM": block("EC PRIVATE KEY", der), "another algorithm": block("PRIVATE KEY", der),
		"no PKCS#8": block("PRIVATE KEY", []byte(secret)), "a public key": block("PUBLIC KEY", der), "two keys": testPEM + testPEM,
	} {
		if _, err := ParseKey([]byte(text)); err == nil {
			t.Errorf("%s is taken for a key", name)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error shows the key: %v", name, err)
		}
	}
}

func TestAsks(t *testing.T) {
	for _, c := range []struct {
		values []string
		want   bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{`sig1=("@authority" "signature-agent";key="sig1");created;expires;keyid="x";tag="web-bot-auth"`}, true},
		{[]string{`sig1=("@authority");nonce="abc";tag="web-bot-auth"`}, true},
		{[]string{`a=("@method");tag="app", b=("@authority");tag="web-bot-auth"`}, true},
		{[]string{`a=("@method");tag="app"`, `b=()`}, true},
		{[]string{`sig1=("@method" "@path")`}, true},
		{[]string{`sig1=("@authority");alg="ed25519"`}, true},
		{[]string{`sig1=("@authority");alg="rsa-pss-sha512";tag="web-bot-auth"`}, false},
		{[]string{`sig1=("@method");tag="other"`}, false},
		{[]string{`sig1=("@method");tag=web-bot-auth`}, false}, // a token is no string
		{[]string{`sig1`}, false},
		{[]string{`sig1="web-bot-auth"`}, false},
		{[]string{`sig1=("@authority"`}, false},
		{[]string{"yes, please"}, false},
	} {
		if got := Asks(c.values); got != c.want {
			t.Errorf("%q: %v, want %v", c.values, got, c.want)
		}
	}
}

func FuzzAsks(f *testing.F) {
	f.Add(`sig1=("@authority" "signature-agent";key="sig1");created;expires;keyid="x";tag="web-bot-auth"`)
	f.Add("a=(;tag=\x00")
	f.Fuzz(func(t *testing.T, value string) {
		if Asks([]string{value}) && !strings.Contains(value, "(") {
			t.Errorf("%q asks without a list", value)
		}
	})
}
