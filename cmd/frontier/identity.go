package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"seine/cmd/internal/boot"
	"seine/fetch"
	"seine/fetch/sign"
)

type identityCmd struct {
	New   string `placeholder:"FILE" help:"Make a key in FILE, which only its owner can read, and print its name. An existing file is refused."`
	Serve string `placeholder:"[HOST:]PORT" help:"Serve the directory of the keys, and the page, at this address until a signal; a port alone means loopback. A proxy in front of it has to speak TLS."`
	Check string `placeholder:"URL" help:"Fetch a served directory and say what is wrong with it."`
	Page  bool   `help:"Print a page that says who crawls, why, from where, and how to stop it."`

	SignKey        []string       `sep:"none" placeholder:"FILE" help:"Key whose public half is published. Repeatable: while keys are rotated, the old one and the new one."`
	SignatureAgent string         `placeholder:"URL" help:"https:// URL at which the directory is served, as fetchers name it."`
	For            time.Duration  `least:"2h" default:"168h" placeholder:"D" help:"Time for which the printed or served signatures hold (${default})."`
	AllowNet       []netip.Prefix `placeholder:"CIDR" help:"Private networks from which --check may fetch (none)."`
	CA             string         `name:"ca" placeholder:"FILE" help:"PEM certificates that --check trusts besides those of the system."`
	who
}

// Run does the one thing that its flags name: without any of them it prints the directory.
func (c *identityCmd) Run(env *boot.Env, g *cli) error {
	modes := 0
	for _, given := range []bool{c.New != "", c.Serve != "", c.Check != ""} {
		if given {
			modes++
		}
	}
	switch {
	case modes > 1 || c.Page && (c.New != "" || c.Check != ""):
		return boot.Usage("new, check, and serve or page are each a call of its own")
	case c.New != "":
		return c.makeKey(env, g)
	case c.Check != "":
		return c.check(env, g)
	}
	if err := c.who.check(); err != nil {
		return err
	}
	d, keys, err := c.directory(env)
	switch {
	case err != nil:
		return err
	case c.Serve != "":
		return c.serve(env, d, keys)
	case c.Page:
		return c.who.print(env.Out, c.SignatureAgent, keys)
	case d == nil:
		return boot.Usage("identity needs one of --new FILE, --sign-key FILE, --check URL and --page")
	}
	return c.print(env, g, d)
}

// makeKey makes a key in a file that was not there.
func (c *identityCmd) makeKey(env *boot.Env, g *cli) error {
	key, err := sign.NewKey()
	if err != nil {
		return err
	}
	text, err := key.PEM()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(c.New, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return boot.Usage("new: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(c.New))
	}
	return g.answer(env, map[string]string{"file": c.New, "keyid": key.ID()}, func(w io.Writer) { fmt.Fprintln(w, key.ID()) })
}

// directory is that of the keys, nil where no key is given.
func (c *identityCmd) directory(env *boot.Env) (*sign.Directory, []*sign.Key, error) {
	if len(c.SignKey) == 0 {
		if c.Serve != "" {
			return nil, nil, boot.Usage("serve needs --sign-key FILE and --signature-agent URL")
		}
		return nil, nil, nil
	}
	var keys []*sign.Key
	for _, path := range c.SignKey {
		key, err := boot.ReadKey(path)
		if err != nil {
			return nil, nil, err
		}
		boot.WarnKey(path, env.Log)
		keys = append(keys, key)
	}
	d, err := sign.NewDirectory(keys, c.SignatureAgent)
	if err != nil {
		return nil, nil, boot.Usage("signature-agent: %w", err)
	}
	return d, keys, nil
}

// print prints an answer with the directory: its header, an empty line, and its body.
func (c *identityCmd) print(env *boot.Env, g *cli, d *sign.Directory) error {
	fields := d.Fields(time.Now(), c.For)
	if g.JSON {
		return g.answer(env, map[string]any{"headers": fields, "body": string(d.Body())}, nil)
	}
	for _, f := range fields {
		fmt.Fprintf(env.Out, "%s: %s\n", f[0], f[1])
	}
	_, err := fmt.Fprintf(env.Out, "\n%s", d.Body())
	return err
}

// serve answers for the directory, and for the page at / where it is wanted, until a
// signal.
func (c *identityCmd) serve(env *boot.Env, d *sign.Directory, keys []*sign.Key) error {
	at, err := boot.ListenAddr("serve", c.Serve)
	if err != nil {
		return boot.Usage("%w", err)
	}
	listener, err := net.Listen("tcp", at)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, _ *http.Request) {
		for _, f := range d.Fields(time.Now(), c.For) {
			w.Header().Set(f[0], f[1])
		}
		w.Write(d.Body()) //nolint:errcheck // the client may be gone; nobody else to tell
	}
	mux.HandleFunc("GET "+sign.WellKnown, answer)
	if path := d.Path(); path != sign.WellKnown {
		mux.HandleFunc("GET "+exactly(path), answer)
	}
	if c.Page && d.Path() != "/" {
		mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
			c.who.print(w, c.SignatureAgent, keys) //nolint:errcheck // as above
		})
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	defer context.AfterFunc(env.Stop, func() { server.Close() })()
	env.Log.Info("serving the directory of keys", "addr", listener.Addr().String(), "path", d.Path())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// exactly is a pattern for one path, whatever stands in it.
func exactly(path string) string {
	path = strings.NewReplacer("{", "%7B", "}", "%7D").Replace(path)
	if strings.HasSuffix(path, "/") {
		return path + "{$}"
	}
	return path
}

// checked is what --check found.
type checked struct {
	URL    string        `json:"url"`
	Keys   []sign.Listed `json:"keys"`
	Faults []string      `json:"faults"`
}

// check fetches a directory as a verifier does, and says what is wrong with it.
func (c *identityCmd) check(env *boot.Env, g *cli) error {
	target := c.Check
	if u, err := url.Parse(target); err == nil && u.Host != "" && u.Path == "" {
		target = u.JoinPath(sign.WellKnown).String()
	}
	if _, err := sign.ParseAgent(target); err != nil {
		return boot.Usage("check: %w", err)
	}
	client, err := fetch.New(fetch.Config{UserAgent: boot.UserAgent(c.Contact), AllowNet: c.AllowNet, CAFile: c.CA, FetchAll: true, MaxBody: sign.MaxDirectory})
	if err != nil {
		return boot.Usage("check: %w", err)
	}
	defer client.Close()
	var resp fetch.Response
	var body served
	if err := client.Do(env.Stop, &fetch.Request{URL: target, Header: [][2]string{{"Accept", sign.MediaType}}}, &resp, &body); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	a := &sign.Answer{URL: target, Status: resp.Status, Header: http.Header{}, Body: body}
	resp.Header.Each(func(name, value string) { a.Header.Add(name, value) })
	if resp.Truncated {
		return fmt.Errorf("check: the directory is larger than %d bytes, or ends early (%s)", sign.MaxDirectory, resp.Cut)
	}
	keys, err := sign.Check(a, time.Now())
	found := checked{URL: target, Keys: keys, Faults: []string{}}
	if err != nil {
		found.Faults = strings.Split(err.Error(), "\n")
	}
	if err := g.answer(env, &found, func(w io.Writer) {
		for _, k := range keys {
			until := "no signature that holds"
			if !k.Expires.IsZero() {
				until = "signs until " + k.Expires.Format(time.RFC3339)
			}
			row(w, "key", k.ID, until)
		}
		for _, fault := range found.Faults {
			row(w, "fault", strings.TrimPrefix(fault, "sign: "))
		}
	}); err != nil {
		return err
	}
	if err != nil {
		return fmt.Errorf("check: %s has faults: servers may take requests for unsigned", target)
	}
	return nil
}

// served keeps a body.
type served []byte

func (k *served) Begin(*fetch.Response) bool { return true }
func (k *served) Write(b []byte) (int, error) {
	*k = append(*k, b...)
	return len(b), nil
}
