package boot

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"

	"seine/frontier"
)

const mask = "xxxxx"

// printConfig writes the values of flags as YAML, those without one as
// comments.
func printConfig(w io.Writer, flags []*kong.Flag) {
	flags = slices.Clone(flags)
	slices.SortStableFunc(flags, func(a, b *kong.Flag) int { return strings.Compare(a.Name, b.Name) })
	for _, flag := range flags {
		switch flag.Name {
		case "help", "version", "print-config", "config":
			continue
		}
		v := flag.Target
		if v.Kind() == reflect.Pointer && !v.IsNil() {
			v = v.Elem()
		}
		if v.IsZero() && v.Kind() != reflect.Bool && flag.Target.Kind() != reflect.Pointer || flag.Target.IsZero() && !flag.HasDefault {
			fmt.Fprintf(w, "# %s:\n", flag.Name)
			continue
		}
		text, err := yaml.Marshal(map[string]any{flag.Name: plain(flag.Name, v.Interface())})
		if err != nil {
			fmt.Fprintf(w, "# %s: %v\n", flag.Name, err)
			continue
		}
		w.Write(text)
	}
}

// CrawlYAML is what a crawl is built on, but for its shards, and those of its
// settings that differ from the defaults, as a file of --config has them. Without
// secrets something stands in their place that --config refuses.
func CrawlYAML(l frontier.Layout, s frontier.Settings, secrets bool) ([]byte, error) {
	values := map[string]any{
		"limit-by": string(l.LimitBy), "plan-urls": l.PlanURLs, "error-rate": l.ErrorRate,
		"strip-params": l.StripParams, "sort-query": l.SortQuery,
	}
	s.Digest, s.MaxCrawlDelay, s.MaxURL = s.DigestKind(), s.CrawlDelayCap(), s.LongestURL()
	defaults := frontier.DefaultSettings()
	changes := frontier.Changes(&defaults, &s)
	is := reflect.ValueOf(s)
	for i := range is.NumField() {
		tag, _, _ := strings.Cut(is.Type().Field(i).Tag.Get("json"), ",")
		name := strings.ReplaceAll(tag, "_", "-")
		if slices.ContainsFunc(changes, func(c frontier.Change) bool { return c.Flag == name }) {
			values[name] = plain(name, is.Field(i).Interface())
		}
	}
	if len(s.Sites) > 0 {
		var rules []map[string]any
		for _, r := range s.Sites {
			rules = append(rules, plainRule(r, secrets))
		}
		values["sites"] = rules
	}
	return yaml.Marshal(values)
}

// plain is a value as the file may hold it, without secrets.
func plain(name string, v any) any {
	if name == "redis" {
		return maskURL(fmt.Sprint(v))
	}
	if list, ok := v.([]string); ok && (name == "proxy" || name == "out") {
		masked := make([]string, len(list))
		for i, url := range list {
			masked[i] = maskURL(url)
		}
		return masked
	}
	switch x := v.(type) {
	case []frontier.SiteRule:
		var list []map[string]any
		for _, r := range x {
			list = append(list, plainRule(r, false))
		}
		return list
	case fmt.Stringer:
		return x.String()
	}
	if rv := reflect.ValueOf(v); rv.Kind() == reflect.Slice {
		list := make([]string, rv.Len())
		for i := range list {
			list[i] = fmt.Sprint(rv.Index(i).Interface())
		}
		return list
	}
	return v
}

// plainRule is a site rule as the file has it; values of headers may be secrets too.
func plainRule(r frontier.SiteRule, secrets bool) (rule map[string]any) {
	if !secrets {
		if r.Auth != "" {
			r.Auth = mask
		}
		r.Headers = maps.Clone(r.Headers)
		for name := range r.Headers {
			r.Headers[name] = mask
		}
	}
	text, err := json.Marshal(r)
	if err == nil {
		err = yaml.Unmarshal(text, &rule) // which JSON is too
	}
	if err != nil {
		panic(err) // a rule is texts and numbers
	}
	return rule
}

// maskURL hides the password of a URL of Redis.
func maskURL(text string) string {
	scheme, rest, isURL := strings.Cut(text, "://")
	at := strings.LastIndex(rest, "@")
	name, _, has := strings.Cut(rest[:max(at, 0)], ":")
	if !isURL || !has {
		return text
	}
	return scheme + "://" + name + ":" + mask + rest[at:]
}
