package sign

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// WellKnown is the path at which a directory names the whole host (section 8.1 of the
	// draft).
	WellKnown = "/.well-known/http-message-signatures-directory"
	// MediaType is that of a directory.
	MediaType = "application/http-message-signatures-directory+json"
	// DirectoryAge is how long a verifier may keep a directory: a new key has to be in
	// it for so long before it signs.
	DirectoryAge = time.Hour

	directoryTag = "http-message-signatures-directory"
)

// Directory is the public halves of keys, to be served at a URL.
type Directory struct {
	keys []*Key
	url  *url.URL
	body []byte
}

// jwk is a member of a key set (RFC 7517, RFC 8037).
type jwk struct {
	Kty     string `json:"kty"`
	Crv     string `json:"crv"`
	Kid     string `json:"kid"`
	X       string `json:"x"`
	Use     string `json:"use"`
	D       string `json:"d,omitempty"`
	From    int64  `json:"nbf,omitempty"`
	Expires int64  `json:"exp,omitempty"`
}

// NewDirectory is a directory of keys that is served at the URL agent.
func NewDirectory(keys []*Key, agent string) (*Directory, error) {
	d := &Directory{keys: keys}
	var err error
	if d.url, err = ParseAgent(agent); err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, errors.New("sign: a directory needs a key")
	}
	var set struct {
		Keys []jwk `json:"keys"`
	}
	for i, k := range keys {
		for _, before := range keys[:i] {
			if before.id == k.id {
				return nil, fmt.Errorf("sign: key %s is given twice", k.id)
			}
		}
		set.Keys = append(set.Keys, jwk{Kty: "OKP", Crv: "Ed25519", Kid: k.id, X: publicX(k.Public()), Use: "sig"})
	}
	d.body, err = json.Marshal(set)
	return d, err
}

// Path is where it is served.
func (d *Directory) Path() string { return d.url.EscapedPath() }

// Body is the directory: a JWK set. It stays the directory's.
func (d *Directory) Body() []byte { return d.body }

// Fields are the header fields of an answer with the body. Each key signs it from now on
// for valid, at least DirectoryAge (appendix B.1 of the draft). The signatures are for
// the host of the directory's URL, whoever asks: for another nobody gets any.
func (d *Directory) Fields(now time.Time, valid time.Duration) [][2]string {
	digest := digestOf(d.body)
	created := now.Unix() - int64(ClockSlack/time.Second)
	var input, signatures []string
	for i, k := range d.keys {
		params := fmt.Sprintf(`("@authority";req "content-digest");created=%d;expires=%d;keyid="%s";tag="%s"`,
			created, now.Unix()+int64(valid/time.Second), k.id, directoryTag)
		base := `"@authority";req: ` + authorityOf(d.url) + "\n\"content-digest\": " + digest + "\n\"@signature-params\": " + params
		name := "binding" + strconv.Itoa(i+1)
		input = append(input, name+"="+params)
		signatures = append(signatures, name+"=:"+base64.StdEncoding.EncodeToString(ed25519.Sign(k.private, []byte(base)))+":")
	}
	return [][2]string{
		{"Content-Type", MediaType},
		{"Cache-Control", "max-age=" + strconv.Itoa(int(DirectoryAge/time.Second))},
		{"Content-Digest", digest},
		{"Signature-Input", strings.Join(input, ", ")},
		{"Signature", strings.Join(signatures, ", ")},
	}
}

// digestOf is the value of Content-Digest of a body (RFC 9530).
func digestOf(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

// authorityOf is the component @authority of a request to an https URL (RFC 9421, section
// 2.2.3).
func authorityOf(u *url.URL) string {
	return strings.ToLower(strings.TrimSuffix(u.Host, ":443"))
}
