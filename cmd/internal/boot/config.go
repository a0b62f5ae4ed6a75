package boot

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"

	"seine/fetch/egress"
	"seine/frontier"
)

// passwordEnv holds Redis's password; no flag does, for process lists show flags.
const passwordEnv = "SEINE_REDIS_PASSWORD"

// KafkaPasswordEnv holds the password of outputs to Kafka.
const KafkaPasswordEnv = "SEINE_KAFKA_PASSWORD"

// toolEnv are variables that tests and scripts read.
var toolEnv = []string{"SEINE_REDISBLOOM", "SEINE_TEST_SERVER", "SEINE_TEST_KAFKA"}

// configPath finds the YAML file before flags are parsed, for what it holds
// takes part in the parsing.
func configPath(args, env []string) string {
	for i, arg := range args {
		if arg == "--" {
			break
		}
		if v, ok := strings.CutPrefix(arg, "--config="); ok {
			return v
		}
		if arg == "--config" && i+1 < len(args) {
			return args[i+1]
		}
	}
	path, _ := lookup(env, "SEINE_CONFIG")
	return path
}

// lookup finds a variable; the last of a name counts. An empty one is unset.
func lookup(env []string, name string) (string, bool) {
	for _, kv := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v, v != ""
		}
	}
	return "", false
}

// file resolves flags from a YAML mapping.
type file struct {
	path   string
	values map[string]any
}

// loadFile reads the YAML file; no path is an empty one.
func loadFile(path string) (*file, error) {
	f := &file{path: path, values: map[string]any{}}
	if path == "" {
		return f, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		if number++; strings.HasSuffix(strings.TrimSpace(line), ": "+mask) || strings.Contains(line, ":"+mask+"@") {
			return nil, fmt.Errorf("config: %s:%d holds %s, which --print-config prints in the place of a secret: put the secret there, or leave it out", path, number, mask)
		}
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		return nil, fmt.Errorf("config: %s: %s", path, yaml.FormatError(err, false, false))
	}
	for key, v := range values {
		name := strings.ReplaceAll(key, "_", "-")
		if _, twice := f.values[name]; twice {
			return nil, fmt.Errorf("config: %s: %s is there twice", path, name)
		}
		f.values[name] = v
	}
	if list, ok := f.values["fields"].([]any); ok { // names for the flag; FieldRules reads the rules between them
		f.values["fields"] = slices.DeleteFunc(list, func(v any) bool { _, rule := v.(map[string]any); return rule })
	}
	if rules, there := f.values[wallKey]; there { // WallRules reads them
		if _, ok := rules.([]any); !ok {
			return nil, fmt.Errorf("config: %s: wall_rules must be a list", path)
		}
		delete(f.values, wallKey)
	}
	return f, checkSites(path, text, f.values["sites"])
}

// checkSites refuses what no site rule has and brings keys to the form in which
// settings have them. Errors name file and line.
func checkSites(path string, text []byte, sites any) error {
	if sites == nil {
		return nil
	}
	list, ok := sites.([]any)
	if !ok {
		return fmt.Errorf("config: %s: sites must be a list", path)
	}
	doc, err := parser.ParseBytes(text, 0)
	if err != nil {
		return fmt.Errorf("config: %s: %s", path, yaml.FormatError(err, false, false))
	}
	nodes := listNodes(doc, "sites")
	for i, site := range list {
		at := path
		if i < len(nodes) { // the list of an alias has none
			at = placeOf(path, nodes[i])
		}
		if err := checkSite(site); err != nil {
			return fmt.Errorf("config: %s: %w", at, err)
		}
	}
	return nil
}

// checkSite is checkSites for one rule.
func checkSite(site any) error {
	values, ok := site.(map[string]any)
	if !ok {
		return errors.New("sites: each must be a mapping with match")
	}
	var rule frontier.SiteRule
	for _, key := range slices.Sorted(maps.Keys(values)) {
		name, v := strings.ReplaceAll(key, "-", "_"), values[key]
		want, ok := siteKeys[name]
		if !ok {
			return fmt.Errorf("sites: unknown key %s; there are %s", key, strings.Join(slices.Sorted(maps.Keys(siteKeys)), ", "))
		}
		text, err := json.Marshal(map[string]any{name: v})
		if err == nil {
			err = json.Unmarshal(text, &rule)
		}
		if err != nil || v == nil {
			return fmt.Errorf("sites: %v: %s is %v, must be %s", values["match"], key, v, want)
		}
		delete(values, key)
		values[name] = v
	}
	if err := rule.Validate(); err != nil {
		return err
	}
	for _, entry := range rule.Bind {
		if _, err := egress.Parse(entry); err != nil {
			return fmt.Errorf("sites: %s: bind: %w", rule.Match, err)
		}
	}
	return nil
}

// siteKeys are the keys of a site rule, each with what its value must be.
var siteKeys = map[string]string{
	"match": "a text, in quotes", "auth": "a text, in quotes", "per_site": "a whole number", "max_pages": "a whole number",
	"delay": "a duration such as 500ms, 30s or 2h", "tls_legacy": "true or false", "headers": "a mapping of names to texts, in quotes",
	"user_agent": "a text, in quotes", "bind": "a list of addresses and networks",
}

// Validate refuses keys that name no flag of this or the other program.
func (f *file) Validate(app *kong.Application) error {
	known := knownFlags(app)
	var unknown []string
	for name := range f.values {
		if !known[name] || name == "config" || name == "help" || name == "version" {
			unknown = append(unknown, name)
		}
	}
	if unknown == nil {
		return nil
	}
	slices.Sort(unknown)
	return fmt.Errorf("config: %s: unknown key %s; keys are names of flags without the dashes, as --help has them, and sites, fields and wall_rules", f.path, strings.Join(unknown, ", "))
}

// knownFlags names the flags of a program, and those of all groups in this package.
func knownFlags(app *kong.Application) map[string]bool {
	var shared struct {
		Common
		RedisFlags
		NameFlag
		CrawlFlags
		ProcessFlags
		FetchFlags
		SeedFlags
	}
	parser, err := kong.New(&shared, kong.ExplicitGroups(groups), kong.Vars{"version": ""})
	if err != nil {
		panic(err) // the grammar is constant
	}
	known := make(map[string]bool)
	nodes := []*kong.Node{app.Node, parser.Model.Node}
	for len(nodes) > 0 {
		node := nodes[0]
		nodes = append(nodes[1:], node.Children...)
		for _, flag := range node.Flags {
			known[flag.Name] = true
		}
	}
	return known
}

// Resolve gives kong the text of a scalar, or a list.
func (f *file) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	switch v := f.values[flag.Name].(type) {
	case nil:
		return nil, nil
	case []any:
		if flag.Target.Kind() != reflect.Slice {
			return nil, errors.New("takes one value, the file has a list")
		}
		return v, nil
	case map[string]any:
		return nil, errors.New("takes a value, the file has a mapping")
	case string:
		return listed(flag, []string{v}), nil
	default:
		return listed(flag, []string{fmt.Sprint(v)}), nil
	}
}

// listed makes a list of what a flag without separator takes several times.
func listed(flag *kong.Flag, values []string) any {
	if flag.Target.Kind() != reflect.Slice || flag.Tag.Sep != -1 {
		return values[0]
	}
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = v
	}
	return list
}

// environ resolves flags from the environment. A flag that takes several
// values without a separator takes one a line.
type environ []string

func (environ) Validate(*kong.Application) error { return nil }

func (e environ) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	v, ok := lookup(e, envName(flag.Name))
	if !ok || flag.Name == "help" || flag.Name == "version" {
		return nil, nil
	}
	return listed(flag, strings.Split(v, "\n")), nil
}

func envName(flag string) string {
	return "SEINE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// strangeEnv names the SEINE_ variables that no flag of this program or of the
// other reads.
func strangeEnv(app *kong.Application, env []string) (strange []string) {
	known := append([]string{passwordEnv, KafkaPasswordEnv}, toolEnv...)
	for name := range knownFlags(app) {
		known = append(known, envName(name))
	}
	for _, kv := range env {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "SEINE_") && !slices.Contains(known, name) {
			strange = append(strange, name)
		}
	}
	return strange
}
