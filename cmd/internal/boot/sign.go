package boot

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"seine/fetch/sign"
)

// signAsked is the value of --sign that has only requests signed whose site asked.
const signAsked = "asked"

// ReadKey reads the key in a file. The error names the file, and shows nothing of it.
func ReadKey(path string) (*sign.Key, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, Usage("sign-key: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 64<<10)) // a key has 119 bytes
	if err != nil {
		return nil, Usage("sign-key: %w", err)
	}
	key, err := sign.ParseKey(text)
	if err != nil {
		return nil, Usage("sign-key: %s: %w", path, err)
	}
	return key, nil
}

// WarnKey logs that others on this machine can read the file of a key.
func WarnKey(path string, log *slog.Logger) {
	if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Mode().Perm()&0o077 != 0 {
		log.Warn("other users of this machine can read the key that signs requests: chmod 600 ends that", "file", path, "mode", st.Mode().Perm().String())
	}
}

// signer is what signs requests, nil for none.
func (f *FetchFlags) signer() (*sign.Signer, error) {
	if f.SignKey == "" {
		return nil, nil
	}
	key, err := ReadKey(f.SignKey)
	if err != nil {
		return nil, err
	}
	s, err := sign.NewSigner(key, f.SignatureAgent)
	if err != nil {
		return nil, Usage("signature-agent: %w", err)
	}
	return s, nil
}

// checkSign says what is wrong with the flags of signatures.
func (f *FetchFlags) checkSign() (faults []error) {
	if f.SignKey == "" && f.SignatureAgent != "" || f.SignKey != "" && f.SignatureAgent == "" {
		faults = append(faults, fmt.Errorf("sign-key and signature-agent need each other: the key signs, and servers find its public half at the URL"))
	}
	if f.SignKey == "" && f.Sign == signAsked {
		faults = append(faults, fmt.Errorf("sign is %s, which needs --sign-key", signAsked))
	}
	return faults
}

// mailOf is the mail address of a contact, "" where it is none.
func mailOf(contact string) string {
	address, isURL := strings.CutPrefix(contact, "mailto:")
	if isURL {
		address, _, _ = strings.Cut(address, "?")
	}
	if name, host, ok := strings.Cut(address, "@"); !ok || name == "" || host == "" || strings.ContainsAny(address, ":/") {
		return ""
	}
	return address
}
