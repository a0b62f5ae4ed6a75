package sign

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// MaxDirectory is how many bytes of a directory are worth reading.
const MaxDirectory = 64 << 10

// Answer is what came of a request for a directory.
type Answer struct {
	URL    string
	Status int
	Header http.Header
	Body   []byte
}

// Listed is a key of a directory.
type Listed struct {
	ID      string    `json:"id"`
	Expires time.Time `json:"expires,omitzero"` // of its signature of the directory, zero where that does not hold
}

// Check joins all faults of a directory that a verifier may meet at now, and lists the
// keys that it can use.
func Check(a *Answer, now time.Time) ([]Listed, error) {
	c := checker{a: a, now: now}
	u, err := ParseAgent(a.URL)
	if err != nil {
		return nil, err
	}
	c.url = u
	switch {
	case a.Status >= 300 && a.Status < 400:
		return nil, fmt.Errorf("sign: status %d: a verifier follows no redirect", a.Status)
	case a.Status != http.StatusOK:
		return nil, fmt.Errorf("sign: status %d, must be 200", a.Status)
	}
	kind, _, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if u.Path == WellKnown && (err != nil || kind != MediaType) {
		c.fault("Content-Type is %.100q, must be %s", a.Header.Get("Content-Type"), MediaType)
	}
	c.readKeys()
	c.checkDigest()
	c.checkSignatures()
	return c.listed, errors.Join(c.faults...)
}

// checker gathers faults of an answer.
type checker struct {
	a      *Answer
	url    *url.URL
	now    time.Time
	keys   []ed25519.PublicKey // of listed
	listed []Listed
	faults []error
}

func (c *checker) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf("sign: "+format, args...))
}

// readKeys lists the keys of Ed25519.
func (c *checker) readKeys() {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(c.a.Body, &set); err != nil {
		c.fault("the body is no JWK set: %v", err)
		return
	}
	for i, raw := range set.Keys {
		var k jwk
		switch err := json.Unmarshal(raw, &k); {
		case err != nil:
			c.fault("key %d is no JWK: %v", i+1, err)
		case k.D != "":
			c.fault("key %d holds its private half: make another key, everybody knows this one", i+1)
		case k.Kty == "OKP" && k.Crv == "Ed25519":
			c.listKey(i+1, &k)
		}
	}
	if len(c.listed) == 0 {
		c.fault("no key of Ed25519 that a verifier can use")
	}
}

// listKey lists a key, the n-th, that can be used.
func (c *checker) listKey(n int, k *jwk) {
	x, err := base64.RawURLEncoding.DecodeString(k.X)
	if err != nil || len(x) != ed25519.PublicKeySize {
		c.fault("key %d: x is not %d bytes in base64url", n, ed25519.PublicKeySize)
		return
	}
	id := thumbprint(x)
	switch {
	case c.url.Path == WellKnown && k.Kid != "" && k.Kid != id:
		c.fault("key %d: kid is %.60q, must be its thumbprint %s", n, k.Kid, id)
	case slices.ContainsFunc(c.listed, func(l Listed) bool { return l.ID == id }):
		c.fault("key %s is listed twice", id)
		return
	case k.From > c.now.Unix():
		c.fault("key %s is not valid before %s", id, instant(k.From))
	case k.Expires != 0 && k.Expires <= c.now.Unix():
		c.fault("key %s expired at %s", id, instant(k.Expires))
	}
	c.keys, c.listed = append(c.keys, x), append(c.listed, Listed{ID: id})
}

func instant(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.RFC3339) }

// checkDigest holds the body to its Content-Digest.
func (c *checker) checkDigest() {
	digests, err := httpsfv.UnmarshalDictionary(c.a.Header.Values("Content-Digest"))
	if err != nil {
		c.fault("Content-Digest does not parse: %v", err)
		return
	}
	member, _ := digests.Get("sha-256")
	item, _ := member.(httpsfv.Item)
	given, ok := item.Value.([]byte)
	switch sum := sha256.Sum256(c.a.Body); {
	case !ok:
		c.fault("Content-Digest has no sha-256: nothing holds the keys and the signatures together")
	case !bytes.Equal(given, sum[:]):
		c.fault("Content-Digest is not that of the body")
	}
}

// checkSignatures wants a signature of each key.
func (c *checker) checkSignatures() {
	inputs, err := httpsfv.UnmarshalDictionary(c.a.Header.Values("Signature-Input"))
	if err != nil {
		c.fault("Signature-Input does not parse: %v", err)
		return
	}
	signatures, err := httpsfv.UnmarshalDictionary(c.a.Header.Values("Signature"))
	if err != nil {
		c.fault("Signature does not parse: %v", err)
		return
	}
	for i := range c.listed {
		c.checkSignature(i, inputs, signatures)
	}
}

// checkSignature looks for a signature of the i-th key.
func (c *checker) checkSignature(i int, inputs, signatures *httpsfv.Dictionary) {
	l := &c.listed[i]
	for _, name := range inputs.Names() {
		member, _ := inputs.Get(name)
		input, ok := member.(httpsfv.InnerList)
		if !ok || !isParam(input.Params, "keyid", l.ID) || !isParam(input.Params, "tag", directoryTag) {
			continue
		}
		expires, err := c.verify(&input, name, signatures, c.keys[i])
		if err != nil {
			c.fault("the signature %s of key %s: %w", name, l.ID, err)
			return
		}
		l.Expires = expires
		return
	}
	c.fault("no signature of key %s with tag %s", l.ID, directoryTag)
}

func isParam(params *httpsfv.Params, name, value string) bool {
	got, ok := params.Get(name)
	return ok && got == value
}

// verify verifies one signature of the answer, and says when it expires.
func (c *checker) verify(input *httpsfv.InnerList, name string, signatures *httpsfv.Dictionary, key ed25519.PublicKey) (expires time.Time, err error) {
	created, _ := param[int64](input.Params, "created")
	until, _ := param[int64](input.Params, "expires")
	switch now := c.now.Unix(); {
	case created == 0 || until == 0:
		return expires, errors.New("created and expires must be there")
	case created > now:
		return expires, fmt.Errorf("made at %s, which is still to come", instant(created))
	case until <= now:
		return expires, fmt.Errorf("expired at %s", instant(until))
	case !isOr(input.Params, "alg", algorithm):
		return expires, errors.New("its algorithm is not ed25519")
	}
	seen := map[string]bool{}
	base, err := signatureBase(input, func(name string, params *httpsfv.Params) (string, error) {
		_, ofRequest := param[bool](params, "req")
		seen[name] = true
		switch {
		case name == "@authority" && ofRequest:
			return authorityOf(c.url), nil
		case name == "@authority":
			return "", errors.New("it covers @authority without req: an answer has none of its own")
		case ofRequest || strings.HasPrefix(name, "@") || len(params.Names()) > 0:
			return "", fmt.Errorf("it covers %.60q, which is not read here", name)
		}
		return fieldValue(c.a.Header, name)
	})
	switch {
	case err != nil:
		return expires, err
	case !seen["@authority"]:
		return expires, errors.New(`it does not cover "@authority";req: another host may serve it as its own`)
	case !seen["content-digest"]:
		return expires, errors.New("it does not cover content-digest: the keys may be exchanged under it")
	}
	member, _ := signatures.Get(name)
	item, _ := member.(httpsfv.Item)
	signature, ok := item.Value.([]byte)
	switch {
	case !ok:
		return expires, errors.New("no bytes under its name in Signature")
	case !ed25519.Verify(key, base, signature):
		return expires, fmt.Errorf("it does not hold for host %s and this answer", authorityOf(c.url))
	}
	return time.Unix(until, 0).UTC(), nil
}

// param is a parameter of a type.
func param[T any](params *httpsfv.Params, name string) (v T, ok bool) {
	got, _ := params.Get(name)
	v, ok = got.(T)
	return v, ok
}

// signatureBase is what a signature is over (RFC 9421, section 2.5); value says what a
// component is.
func signatureBase(input *httpsfv.InnerList, value func(name string, params *httpsfv.Params) (string, error)) ([]byte, error) {
	var base []byte
	seen := map[string]bool{}
	for _, item := range input.Items {
		name, ok := item.Value.(string)
		if !ok {
			return nil, errors.New("a component is no string")
		}
		text, err := httpsfv.Marshal(item)
		if err == nil && seen[text] {
			err = fmt.Errorf("component %s comes twice", text)
		}
		if err != nil {
			return nil, err
		}
		seen[text] = true
		v, err := value(name, item.Params)
		if err != nil {
			return nil, err
		}
		base = append(append(append(append(base, text...), ": "...), v...), '\n')
	}
	params, err := httpsfv.Marshal(*input)
	return append(append(base, `"@signature-params": `...), params...), err
}

// fieldValue is the component of a header field (RFC 9421, section 2.1).
func fieldValue(h http.Header, name string) (string, error) {
	values := slices.Clone(h.Values(name))
	if len(values) == 0 {
		return "", fmt.Errorf("it covers %.60q, which the answer lacks", name)
	}
	for i, v := range values {
		values[i] = strings.TrimSpace(v)
	}
	return strings.Join(values, ", "), nil
}
