package boot

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"seine/shard"
)

// RedisFlags say where Redis is and how to get in. Whether it is a cluster is
// found out by asking it.
type RedisFlags struct {
	Redis             string `group:"redis" default:"127.0.0.1:6379" placeholder:"ADDR" help:"host:port,... or redis://[user:password@]host:port,...[/db]; rediss:// for TLS. One server or some of a cluster (${default}). The password may also stand in SEINE_REDIS_PASSWORD."`
	RedisPasswordFile string `group:"redis" placeholder:"FILE" help:"File with Redis's password."`
	RedisTLS          bool   `group:"redis" name:"redis-tls" help:"Speak TLS, as with rediss://."`
	RedisCA           string `group:"redis" name:"redis-ca" placeholder:"FILE" help:"PEM certificates to trust instead of the system's."`
	RedisCert         string `group:"redis" placeholder:"FILE" help:"PEM certificate of this client."`
	RedisKey          string `group:"redis" placeholder:"FILE" help:"PEM key of this client."`
	RedisServerName   string `group:"redis" placeholder:"NAME" help:"Name that the server's certificate must have."`
	Ack               string `group:"redis" enum:"master,replica" default:"master" help:"What acknowledges an admission: the master, or a replica too."`
}

// Endpoint is where Redis is and how to get in.
type Endpoint struct {
	Addrs    []string
	User     string
	Password string
	DB       int
	TLS      *tls.Config // nil: plain
}

// Endpoint reads the flags and the files that they name; env is as of
// os.Environ. A password comes from the file, else the environment, else the URL.
func (r *RedisFlags) Endpoint(env []string) (*Endpoint, error) {
	e := &Endpoint{}
	secure, err := e.parse(r.Redis)
	if err != nil {
		return nil, err
	}
	if v, ok := lookup(env, passwordEnv); ok {
		e.Password = v
	}
	if r.RedisPasswordFile != "" {
		text, err := os.ReadFile(r.RedisPasswordFile)
		if err != nil {
			return nil, Usage("redis-password-file: %w", err)
		}
		e.Password = strings.TrimRight(string(text), "\r\n")
	}
	wantsTLS := r.RedisCA != "" || r.RedisCert != "" || r.RedisKey != "" || r.RedisServerName != ""
	if secure || r.RedisTLS {
		e.TLS, err = r.tls()
		return e, err
	}
	if wantsTLS {
		return nil, Usage("redis: certificates are given but the connection is plain; use rediss:// or --redis-tls")
	}
	return e, nil
}

// parse reads addresses, or a URL whose host part may be a list.
func (e *Endpoint) parse(text string) (secure bool, err error) {
	hosts := text
	scheme, rest, isURL := strings.Cut(text, "://")
	if isURL {
		switch scheme {
		case "redis":
		case "rediss":
			secure = true
		default:
			return false, Usage("redis: scheme must be redis or rediss")
		}
		if user, after, ok := cutLast(rest, "@"); ok {
			name, password, _ := strings.Cut(user, ":")
			if e.User, err = url.PathUnescape(name); err == nil {
				e.Password, err = url.PathUnescape(password)
			}
			if err != nil {
				return false, Usage("redis: user or password of the URL is not percent-encoded right")
			}
			rest = after
		}
		rest, _, _ = strings.Cut(rest, "?")
		var db string
		if hosts, db, _ = strings.Cut(rest, "/"); db != "" {
			if e.DB, err = strconv.Atoi(db); err != nil || e.DB < 0 {
				return false, Usage("redis: the path of the URL must be the number of a database")
			}
		}
	}
	for h := range strings.SplitSeq(hosts, ",") {
		if h = strings.TrimSpace(h); h == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(h); err != nil {
			h = net.JoinHostPort(strings.Trim(h, "[]"), "6379")
		}
		e.Addrs = append(e.Addrs, h)
	}
	if len(e.Addrs) == 0 {
		return false, Usage("redis: no address given")
	}
	return secure, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

func (r *RedisFlags) tls() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: r.RedisServerName}
	if r.RedisCA != "" {
		pem, err := os.ReadFile(r.RedisCA)
		if err != nil {
			return nil, Usage("redis-ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, Usage("redis-ca: no certificate in %s", r.RedisCA)
		}
	}
	if r.RedisCert != "" || r.RedisKey != "" {
		pair, err := tls.LoadX509KeyPair(r.RedisCert, r.RedisKey)
		if err != nil {
			return nil, Usage("redis-cert and redis-key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// Open connects to Redis as the flags and this process's environment say.
func (r *RedisFlags) Open(ctx context.Context) (*shard.Client, error) {
	e, err := r.Endpoint(os.Environ())
	if err != nil {
		return nil, err
	}
	client, err := shard.Open(ctx, shard.Config{Addrs: e.Addrs})
	if err != nil {
		return nil, fmt.Errorf("redis at %s: %w", strings.Join(e.Addrs, ","), err)
	}
	return client, nil
}
