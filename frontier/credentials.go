package frontier

import (
	"strings"

	"seine/frontier/canon"
)

// The credentials of a seed go with every request to its origin, as in browsers.
// A shard keeps them with the site, a line for each origin: the origin, a blank,
// and user name and password as a URL holds them. They stay while the site has work,
// and a day longer.

// The bounds of what a site keeps. A seed whose credentials are longer is refused;
// one of a further origin is Capped.
const (
	CredentialOrigins = 16  // of a site
	CredentialBytes   = 512 // of one of its lines
)

// CredentialsFor returns those for an origin out of what its site keeps, "" = none.
func CredentialsFor(kept, origin string) string {
	for line := range strings.Lines(kept) {
		if rest, ok := strings.CutPrefix(line, origin); ok && rest[0] == ' ' {
			return strings.TrimSuffix(rest[1:], "\n")
		}
	}
	return ""
}

// AddCredentials adds those for an origin, in the place of former ones, to what its
// site keeps. It refuses those of a further origin than a site may have.
func AddCredentials(kept, origin, credentials string) (now string, ok bool) {
	others, n := "", 0
	for line := range strings.Lines(kept) {
		if rest, ok := strings.CutPrefix(line, origin); !ok || rest[0] != ' ' {
			others += line
			n++
		}
	}
	if n >= CredentialOrigins {
		return kept, false
	}
	return others + origin + " " + credentials + "\n", true
}

// WithCredentials is a URL in fetch form with what its site keeps for its origin. One
// that holds credentials keeps its own.
func WithCredentials(url, kept string) string {
	if kept == "" {
		return url
	}
	origin, ok := OriginOf(url)
	if !ok {
		return url
	}
	return withUserinfo(url, CredentialsFor(kept, origin))
}

// withUserinfo is a URL in fetch form, without credentials, with these.
func withUserinfo(url, credentials string) string {
	if credentials == "" {
		return url
	}
	scheme, rest, _ := strings.Cut(url, "://")
	return scheme + "://" + credentials + "@" + rest
}

// OriginOf is the origin of a URL in fetch form. It fails where the URL holds
// credentials.
func OriginOf(url string) (origin string, ok bool) {
	at := strings.Index(url, "://") + len("://")
	end := strings.IndexByte(url[at:], '/')
	if end < 0 || strings.IndexByte(url[at:at+end], '@') >= 0 {
		return "", false
	}
	return url[:at+end], true
}

// tooLong reports whether credentials take more than a site keeps of one origin.
func tooLong(u *canon.URL) bool {
	return len(u.Origin())+len(" ")+len(u.Userinfo())+len("\n") > CredentialBytes
}

// AdmitWithCredentials is how a driver admits a batch some of whose candidates bring
// credentials: keep keeps those of one candidate and answers Admitted, or the
// verdict of the candidate, which is then not admitted.
func AdmitWithCredentials(batch []Candidate, verdicts []Verdict, keep func(*Candidate) (Verdict, error), admit func([]Candidate, []Verdict) error) error {
	var rest []Candidate
	var of []int
	for i := range batch {
		verdicts[i] = Admitted
		if batch[i].Credentials != "" {
			var err error
			if verdicts[i], err = keep(&batch[i]); err != nil {
				return err
			}
		}
		if verdicts[i] == Admitted {
			rest, of = append(rest, batch[i]), append(of, i)
		}
	}
	answers := make([]Verdict, len(rest))
	err := admit(rest, answers)
	for j, i := range of {
		verdicts[i] = answers[j]
	}
	return err
}

// HasCredentials reports whether any of a batch brings credentials.
func HasCredentials(batch []Candidate) bool {
	for i := range batch {
		if batch[i].Credentials != "" {
			return true
		}
	}
	return false
}
