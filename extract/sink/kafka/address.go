package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"seine/extract/sink"
)

// Config of a Sink. Brokers and Topic are required; the zero value of another
// field is the default it names.
type Config struct {
	Brokers  []string // host:port; some of the cluster
	Topic    string   // it has to be there
	TLS      *tls.Config
	User     string // "": no login
	Password string
	// Mechanism of SASL: plain, scram-sha-256 or scram-sha-512. Default scram-sha-512.
	Mechanism string
	// Fields are the optional fields of records. Default none.
	Fields sink.Fields
	// MaxPending is how many bytes may wait here before Write blocks. Default 64 MB.
	MaxPending int64
	// Drop makes the sink drop records that find no room.
	Drop bool
	// Log gets the first record that is too large for the topic. Nil: discarded.
	Log *slog.Logger
}

const defaultPort = "9092"

// Parse reads an address as of the command line: kafka://host:port,host/topic, or
// kafka://user@host/topic, whose query may have sasl (the mechanism), tls=true,
// ca (a file of certificates) and password_file. A password comes from there, or
// is the one given, or stands behind the user. Nothing is connected to.
func Parse(address, password string) (Config, error) {
	c := Config{Password: password}
	rest, query, _ := strings.Cut(strings.TrimPrefix(address, "kafka://"), "?")
	hosts, topic, _ := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(hosts, '@'); at >= 0 {
		user, word, has := strings.Cut(hosts[:at], ":")
		hosts = hosts[at+1:]
		var err, err2 error
		if c.User, err = url.PathUnescape(user); has {
			c.Password, err2 = url.PathUnescape(word)
		}
		if err != nil || err2 != nil {
			return c, errors.New("kafka: user or password are not encoded as in URLs") // errors would show them
		}
	}
	for host := range strings.SplitSeq(hosts, ",") {
		if _, _, err := net.SplitHostPort(host); err != nil && host != "" {
			host = net.JoinHostPort(strings.Trim(host, "[]"), defaultPort)
		}
		c.Brokers = append(c.Brokers, host)
	}
	c.Topic = topic
	q, err := url.ParseQuery(query)
	if err != nil {
		return c, fmt.Errorf("kafka: %w", err)
	}
	for name := range q {
		if err := c.set(name, q.Get(name)); err != nil {
			return c, fmt.Errorf("kafka: %s: %w", name, err)
		}
	}
	return c, c.Validate()
}

// set reads one parameter.
func (c *Config) set(name, value string) error {
	switch name {
	case "sasl":
		c.Mechanism = value
	case "tls", "ca":
		if c.TLS == nil {
			c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		if name == "tls" {
			if value != "true" {
				return errors.New("can only be true; leave it out for none")
			}
			return nil
		}
		text, err := os.ReadFile(value)
		if err != nil {
			return err
		}
		if c.TLS.RootCAs = x509.NewCertPool(); !c.TLS.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("%s holds no certificate in PEM", value)
		}
	case "password_file":
		text, err := os.ReadFile(value)
		if err != nil {
			return err
		}
		c.Password = strings.TrimRight(string(text), "\r\n")
	default:
		return errors.New("unknown parameter: there are sasl, tls, ca and password_file")
	}
	return nil
}

// Validate names all that is wrong with c.
func (c *Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("kafka: "+format, args...)) }
	for _, b := range c.Brokers {
		if host, port, err := net.SplitHostPort(b); err != nil || host == "" || port == "" {
			bad("%q is no broker: give HOST:PORT", b)
		}
	}
	if len(c.Brokers) == 0 || c.Topic == "" || strings.ContainsRune(c.Topic, '/') {
		bad("brokers and a topic are needed, as in kafka://HOST:PORT,HOST:PORT/TOPIC")
	}
	if c.User != "" && c.Password == "" {
		bad("user %s has no password: give SEINE_KAFKA_PASSWORD, or password_file=FILE in the address", c.User)
	}
	if c.User == "" && c.Mechanism != "" {
		bad("sasl needs a user, as in kafka://USER@HOST/TOPIC")
	}
	if _, err := c.mechanism(); err != nil {
		errs = append(errs, err)
	}
	if c.MaxPending < 0 {
		bad("MaxPending cannot be negative")
	}
	return errors.Join(errs...)
}

// mechanism is how the user logs in.
func (c *Config) mechanism() (sasl.Mechanism, error) {
	switch c.Mechanism {
	case "plain":
		return plain.Auth{User: c.User, Pass: c.Password}.AsMechanism(), nil
	case "scram-sha-256":
		return scram.Auth{User: c.User, Pass: c.Password}.AsSha256Mechanism(), nil
	case "scram-sha-512", "":
		return scram.Auth{User: c.User, Pass: c.Password}.AsSha512Mechanism(), nil
	}
	return nil, fmt.Errorf("kafka: there is no sasl %q: there are plain, scram-sha-256 and scram-sha-512", c.Mechanism)
}

// options are those of the client.
func (c *Config) options() ([]kgo.Opt, error) {
	opts := []kgo.Opt{kgo.SeedBrokers(c.Brokers...), kgo.DefaultProduceTopic(c.Topic), kgo.ClientID("seine"), kgo.DialTimeout(dialTimeout)}
	if c.TLS != nil {
		opts = append(opts, kgo.DialTLSConfig(c.TLS))
	}
	if c.User != "" {
		m, err := c.mechanism()
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.SASL(m))
	}
	return opts, nil
}
