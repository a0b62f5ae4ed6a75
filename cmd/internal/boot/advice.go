package boot

import (
	"errors"
	"strings"

	"seine/fetch"
	"seine/frontier"
	"seine/shard"
)

// advice is what to do about an error, in words of flags and variables, which the
// packages below do not know. It is "" where the error itself has it.
func advice(err error) string {
	text := err.Error()
	if site := (*fetch.Error)(nil); errors.As(err, &site) {
		return "" // the flags for Redis are none for a site
	}
	switch {
	case strings.Contains(text, "NOAUTH"), strings.Contains(text, "WRONGPASS"), errors.Is(err, shard.ErrLogin):
		return "; give Redis's password in " + passwordEnv + " or --redis-password-file"
	case errors.Is(err, shard.ErrPlain), strings.Contains(text, "speaks no TLS"):
		return "; leave --redis-tls and rediss:// out, or name the server's port for TLS"
	case strings.Contains(text, "x509: certificate signed by unknown authority"):
		return "; name the file with the certificate of its authority: --redis-ca FILE"
	case strings.Contains(text, "x509: certificate is valid for"), strings.Contains(text, "x509: cannot validate certificate"), strings.Contains(text, "x509: certificate is not valid for"):
		return "; name the host that the certificate is for: --redis-server-name NAME"
	case strings.Contains(text, "tls: certificate required"), strings.Contains(text, "tls: bad certificate"), strings.Contains(text, "handshake failure"):
		return "; the server asks for a certificate: --redis-cert FILE --redis-key FILE"
	case errors.Is(err, shard.ErrUnreachable) && (strings.HasSuffix(text, "EOF") || strings.Contains(text, "connection reset")):
		return "; if this port speaks TLS, say so: --redis-tls or rediss://"
	case errors.Is(err, frontier.ErrLayout) && strings.Contains(text, "shards: the crawl has"):
		return "; leave --shards out, for the crawl knows its number, which is fixed"
	case errors.Is(err, shard.ErrUnreachable) && strings.Contains(text, defaultRedis):
		return otherRedis
	}
	return ""
}

// defaultRedis is where Redis is looked for without --redis.
const defaultRedis = "127.0.0.1:6379"

// otherRedis is what to do where no Redis is at the default address.
const otherRedis = "; if none is to run there, name yours with --redis, or crawl without one: fetcher --embedded"

// rephrase is an error of the parser in the user's words: the parser speaks of tokens.
func rephrase(err error) error {
	text := err.Error()
	if strings.HasPrefix(text, "expected one of ") {
		return errors.New(text + "; --help lists them all")
	}
	if argument, ok := strings.CutPrefix(text, `expected "<`); ok {
		return errors.New("argument <" + strings.TrimSuffix(argument, `"`) + " is missing; --help describes it")
	}
	if argument, ok := strings.CutPrefix(text, "unexpected argument "); ok && (strings.Contains(argument, "://") || strings.HasPrefix(argument, "www.")) {
		hidden := frontier.HideCredentials(strings.Fields(argument)[0])
		return errors.New("unexpected argument " + hidden + "; a URL to start from is given as --seed " + hidden)
	}
	return err
}
