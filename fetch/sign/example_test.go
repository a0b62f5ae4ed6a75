package sign_test

import (
	"fmt"
	"strings"
	"time"

	"seine/fetch/sign"
)

func ExampleSigner() {
	// The key of RFC 9421, appendix B.1.4, which everybody knows.
	key, err := sign.ParseKey([]byte("-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n-----END PRIVATE KEY-----\n"))
	if err != nil {
		panic(err)
	}
	signer, err := sign.NewSigner(key, "https://bot.example/.well-known/http-message-signatures-directory")
	if err != nil {
		panic(err)
	}
	fields := signer.AppendFields(nil, "example.com", time.Unix(1_800_000_000, 0))
	for line := range strings.Lines(string(fields)) {
		name, _, _ := strings.Cut(line, ":")
		fmt.Println(name, len(line))
	}
	// Output:
	// Signature-Agent 91
	// Signature-Input 176
	// Signature 108
}
