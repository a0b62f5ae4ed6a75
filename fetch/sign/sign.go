// Package sign says who asks: it signs requests as Web Bot Auth has it,
// draft-ietf-webbotauth-httpsig-protocol-01, which is RFC 9421 with Ed25519.
//
// A Key is a private key and its name, the thumbprint of its public half (RFC 7638). A
// Signer writes the three fields of a signed request. They name a URL, at which a
// verifier finds the public half: a Directory is what to serve there, and Check says what
// is wrong with what is served. Asks reads whether an answer asks for signatures.
//
// A signature covers the authority of the request and the URL of the keys, and holds for
// Lifetime: whoever sees it can send it to that authority until then. So each attempt has
// its own. There is no nonce, which the draft leaves to servers that want one: a crawler
// asks each URL once.
//
// What is written has a fixed form and is appended as text. What is read is the text of
// others, and a library of structured fields (RFC 9651) reads it.
package sign

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

const (
	// Lifetime is how long the signature of a request holds from when it is made.
	Lifetime = 5 * time.Minute
	// ClockSlack is how far the clock of a verifier may be behind: signatures are dated
	// back so far.
	ClockSlack = 5 * time.Second

	requestTag = "web-bot-auth"
	label      = "sig1" // of a request's signature, and of its member of Signature-Agent
)

// Key is a private key that signs, and its name. It shows nothing else of itself.
type Key struct {
	id      string
	private ed25519.PrivateKey
}

// NewKey makes a key.
func NewKey() (*Key, error) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return keyOf(private), nil
}

// ParseKey reads a key in the form of PKCS#8 in PEM. Its error shows nothing of the text.
func ParseKey(text []byte) (*Key, error) {
	block, rest := pem.Decode(text)
	switch {
	case block == nil:
		return nil, errors.New("sign: no PEM block; a key begins with -----BEGIN PRIVATE KEY-----")
	case block.Type != pemType:
		return nil, fmt.Errorf("sign: the PEM block is a %.40q, must be a PRIVATE KEY (PKCS#8)", block.Type)
	case strings.TrimSpace(string(rest)) != "":
		return nil, errors.New("sign: there is more than one key; each has a file of its own")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("sign: the PEM block holds no PKCS#8 key")
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("sign: the key is a %T, must be of Ed25519", parsed)
	}
	return keyOf(private), nil
}

const pemType = "PRIVATE KEY"

func keyOf(private ed25519.PrivateKey) *Key {
	k := &Key{private: private}
	k.id = thumbprint(k.Public())
	return k
}

// ID is the name of the key: the JWK thumbprint of its public half.
func (k *Key) ID() string { return k.id }

// String is the name of the key.
func (k *Key) String() string { return k.id }

// Format writes the name of the key, whatever the verb.
func (k *Key) Format(f fmt.State, _ rune) { fmt.Fprint(f, k.id) }

// Public is the public half.
func (k *Key) Public() ed25519.PublicKey { return k.private.Public().(ed25519.PublicKey) }

// PEM is the whole key, as ParseKey reads it: a secret.
func (k *Key) PEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}), nil
}

// publicX is the public half as member x of a JWK.
func publicX(public ed25519.PublicKey) string { return base64.RawURLEncoding.EncodeToString(public) }

// thumbprint names a public key (RFC 7638, section 3; RFC 8037, appendix A.3).
func thumbprint(public ed25519.PublicKey) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + publicX(public) + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Signer signs requests. It is safe for concurrent use.
type Signer struct {
	key        *Key
	fields     string // up to what the signature covers
	covered    string // with the name of the next line of the signature base
	components string
	rest       string // of the parameters, after the times
}

// NewSigner returns what signs with a key whose public half is at the URL agent.
func NewSigner(key *Key, agent string) (*Signer, error) {
	if _, err := ParseAgent(agent); err != nil {
		return nil, err
	}
	member := `"signature-agent";key="` + label + `"`
	return &Signer{
		key:        key,
		fields:     "Signature-Agent: " + label + `="` + agent + "\"\r\nSignature-Input: " + label + "=",
		covered:    "\n" + member + `: "` + agent + "\"\n\"@signature-params\": ",
		components: `("@authority" ` + member + ");created=",
		rest:       `;keyid="` + key.id + `";tag="` + requestTag + `"`,
	}, nil
}

// ParseAgent reads the URL that a Signer names, and at which a directory is served. Its
// scheme must be https (section 5.2.1 of the draft).
func ParseAgent(agent string) (*url.URL, error) {
	u, err := url.Parse(agent)
	plain := !strings.ContainsFunc(agent, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '\\' })
	switch {
	case err != nil || !plain || u.Host == "":
		return nil, fmt.Errorf("sign: signature agent %.200q is no URL", agent)
	case u.Scheme != "https":
		return nil, fmt.Errorf("sign: signature agent %q must begin with https://", u.Redacted())
	case u.User != nil || u.Fragment != "":
		return nil, fmt.Errorf("sign: signature agent %q must have neither user nor fragment", u.Redacted())
	case u.Path == "":
		return nil, fmt.Errorf("sign: signature agent %q names no page: servers fetch the keys at just this URL; %s%s is usual", agent, agent, WellKnown)
	}
	return u, nil
}

// AppendFields appends the fields of a request to authority, its host and, if it is not
// that of the scheme, port. They are as lines of HTTP/1.1. Cost: a signature, 25 us of a processor.
// What dst lacks in room for some 900 bytes it allocates.
func (s *Signer) AppendFields(dst []byte, authority string, now time.Time) []byte {
	created := now.Unix() - int64(ClockSlack/time.Second)
	dst = append(dst, s.fields...)
	from := len(dst)
	dst = strconv.AppendInt(append(dst, s.components...), created, 10)
	dst = strconv.AppendInt(append(dst, ";expires="...), created+int64((ClockSlack+Lifetime)/time.Second), 10)
	dst = append(dst, s.rest...)
	end := len(dst)
	// The signature base (RFC 9421, section 2.5) stands behind the fields until it is signed.
	dst = append(append(append(dst, `"@authority": `...), authority...), s.covered...)
	dst = append(dst, dst[from:end]...)
	signature := ed25519.Sign(s.key.private, dst[end:])
	dst = append(append(append(dst[:end], "\r\nSignature: "...), label...), "=:"...)
	dst = base64.StdEncoding.AppendEncode(dst, signature)
	return append(dst, ":\r\n"...)
}

// Asks reports whether the values of Accept-Signature ask for such signatures (RFC 9421,
// section 5.1): a member of it has the tag of Web Bot Auth or none, and names no other
// algorithm. A list of components or a nonce changes nothing.
func Asks(values []string) bool {
	if len(values) == 0 {
		return false
	}
	members, err := httpsfv.UnmarshalDictionary(values)
	if err != nil {
		return false
	}
	for _, name := range members.Names() {
		member, _ := members.Get(name)
		list, ok := member.(httpsfv.InnerList)
		if ok && isOr(list.Params, "tag", requestTag) && isOr(list.Params, "alg", algorithm) {
			return true
		}
	}
	return false
}

const algorithm = "ed25519"

// isOr reports whether a parameter is a value, or is not there.
func isOr(params *httpsfv.Params, name, value string) bool {
	got, ok := params.Get(name)
	return !ok || got == value
}
