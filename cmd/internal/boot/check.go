package boot

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"seine/extract"
	"seine/frontier"
	"seine/frontier/redis"
)

// checkBounds holds the values of flags to their tag `least`: a number, or a
// duration. A value that was left out and has no default is not looked at. A
// directory that is given must have a name: what a variable that is not set
// leaves of it would else mean that nothing is kept.
func checkBounds(selected *kong.Context) error {
	given := map[string]bool{}
	for _, p := range selected.Path {
		if p.Flag != nil {
			given[p.Flag.Name] = true
		}
	}
	var faults []error
	typed := onCommandLine(selected)
	for _, flag := range selected.Flags() {
		if flag.PlaceHolder == "DIR" && flag.Target.String() == "" && slices.Contains(typed, flag.Name) {
			faults = append(faults, fmt.Errorf("%s is empty, must name a directory", flag.Name))
		}
		if !flag.Tag.Has("least") || !given[flag.Name] && !flag.HasDefault {
			continue
		}
		if !reaches(flag.Target, flag.Tag.Get("least")) {
			faults = append(faults, fmt.Errorf("%s is %v, must be at least %s", flag.Name, flag.Target, flag.Tag.Get("least")))
		}
	}
	return errors.Join(faults...)
}

// reaches compares a number with a bound, which is part of the grammar.
func reaches(v reflect.Value, least string) bool {
	if d, ok := v.Interface().(time.Duration); ok {
		bound, err := time.ParseDuration(least)
		return err == nil && d >= bound
	}
	bound, err := strconv.ParseFloat(least, 64)
	if err != nil {
		return false
	}
	if v.CanInt() {
		return float64(v.Int()) >= bound
	}
	return v.CanFloat() && v.Float() >= bound
}

// onCommandLine names the flags that stand on the command line.
func onCommandLine(selected *kong.Context) []string {
	var names []string
	for _, p := range selected.Path {
		if p.Flag != nil && !p.Resolved {
			names = append(names, p.Flag.Name)
		}
	}
	return names
}

// typedPasswords names the flags on the command line with a password in an address.
func typedPasswords(selected *kong.Context) []string {
	var names []string
	for _, p := range selected.Path {
		if p.Flag == nil || p.Resolved {
			continue
		}
		for value := range strings.FieldsSeq(strings.Trim(fmt.Sprint(p.Flag.Target), "[]")) {
			scheme, rest, _ := strings.Cut(value, "://")
			authority, _, _ := strings.Cut(rest, "/")
			if address := scheme + "://" + authority; maskURL(address) != address && !slices.Contains(names, p.Flag.Name) {
				names = append(names, p.Flag.Name)
			}
		}
	}
	return names
}

// usage makes faults, if any, an error of what the user gave.
func usage(faults ...error) error {
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("%w: %w", ErrUsage, err)
	}
	return nil
}

// Check refuses a name that no crawl can have.
func (n *NameFlag) Check() error { return usage(frontier.ValidName(n.Crawl)) }

// Check joins all faults of the layout and the settings that can be seen
// without a crawl.
func (c *CrawlFlags) Check() error {
	var faults []error
	settings := c.ToSettings()
	faults = append(faults, settings.Validate())
	if _, err := extract.ParseKinds(settings.Follow); err != nil {
		faults = append(faults, err)
	}
	layout := c.ToLayout()
	if layout.Shards == 0 {
		layout.Shards = 1 // not given here
	}
	faults = append(faults, redis.Validate(layout.Complete()))
	return usage(faults...)
}

// Check joins all faults that Fetch does not see.
func (f *FetchFlags) Check() error {
	var faults []error
	if f.Contact != "" && !reachable(f.Contact) {
		faults = append(faults, fmt.Errorf("contact is %q, must be a URL such as https://example.com/bot or a mail address", f.Contact))
	}
	faults = append(faults, f.checkSign()...)
	for _, code := range f.RetryCodes {
		if code < 100 || code > 599 {
			faults = append(faults, fmt.Errorf("retry-codes has %d, must be statuses from 100 to 599", code))
		}
	}
	return usage(faults...)
}

// reachable reports whether a text can stand in the brackets of a user agent as
// a place to reach somebody.
func reachable(contact string) bool {
	if strings.ContainsFunc(contact, func(r rune) bool { return r <= ' ' || r >= 0x7f }) || strings.ContainsAny(contact, `()"<>\`) {
		return false
	}
	if name, host, ok := strings.Cut(contact, "@"); ok && !strings.ContainsAny(name, ":/") {
		return name != "" && host != ""
	}
	u, err := url.Parse(contact)
	return err == nil && (slices.Contains([]string{"http", "https"}, u.Scheme) && u.Host != "" || u.Scheme == "mailto" && strings.Contains(u.Opaque, "@"))
}

// ListenAddr is the address of a flag to listen on, PORT or HOST:PORT;
// loopback when only a port is given.
func ListenAddr(flag, text string) (string, error) {
	addr := text
	if !strings.Contains(addr, ":") {
		addr = ":" + addr
	}
	host, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return "", fmt.Errorf("%s is %q, must be PORT or HOST:PORT", flag, text)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}
