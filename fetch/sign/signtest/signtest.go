// Package signtest reads signed requests in the tests of other packages, as a server
// would that knows the key. It builds what was signed on its own, of the text of the
// fields alone.
package signtest

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"seine/fetch/sign"
)

// Agent is where the keys of these tests would be.
const Agent = "https://bot.example" + sign.WellKnown

// New makes a key and what signs with it.
func New(t testing.TB) (*sign.Key, *sign.Signer) {
	t.Helper()
	key, err := sign.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	signer, err := sign.NewSigner(key, Agent)
	if err != nil {
		t.Fatal(err)
	}
	return key, signer
}

// IsSigned reports whether a request has any of the fields of a signature.
func IsSigned(h http.Header) bool {
	return h.Get("Signature") != "" || h.Get("Signature-Input") != "" || h.Get("Signature-Agent") != ""
}

// Verify says what is wrong with the signature of a request to authority that came at now.
func Verify(key *sign.Key, authority string, h http.Header, now time.Time) error {
	for _, name := range []string{"Signature", "Signature-Input", "Signature-Agent"} {
		if n := len(h.Values(name)); n != 1 {
			return fmt.Errorf("%d fields %s", n, name)
		}
	}
	agent, params := strings.TrimPrefix(h.Get("Signature-Agent"), "sig1="), strings.TrimPrefix(h.Get("Signature-Input"), "sig1=")
	if agent != strconv.Quote(Agent) {
		return fmt.Errorf("its agent is %s", agent)
	}
	value := strings.TrimSuffix(strings.TrimPrefix(h.Get("Signature"), "sig1=:"), ":")
	signature, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return err
	}
	base := "\"@authority\": " + authority + "\n\"signature-agent\";key=\"sig1\": " + agent + "\n\"@signature-params\": " + params
	if !ed25519.Verify(key.Public(), []byte(base), signature) {
		return fmt.Errorf("no signature of:\n%s", base)
	}
	var created, expires int64
	var rest string
	if _, err := fmt.Sscanf(params, `("@authority" "signature-agent";key="sig1");created=%d;expires=%d;%s`, &created, &expires, &rest); err != nil {
		return fmt.Errorf("%s: %w", params, err)
	}
	if want := `keyid="` + key.ID() + `";tag="web-bot-auth"`; rest != want {
		return fmt.Errorf("parameters %s, want %s", rest, want)
	}
	if at := now.Unix(); created > at || created < at-60 || expires <= at || expires > at+600 {
		return fmt.Errorf("it holds from %d to %d, and it is %d", created, expires, at)
	}
	return nil
}
