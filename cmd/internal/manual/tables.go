package manual

import (
	"strings"

	"github.com/alecthomas/kong"

	"seine/cmd/internal/boot"
)

// Tables returns the tables of cmd/README.md that describe a program. "verbs" lists
// its verbs, "of VERB" the flags of one verb with verbs of its own, or of plan, and
// "of verbs" those of the others. Flags that many verbs share have a table for each
// group of --help, by the group's key. Names and texts are those of --help.
func Tables(name string, grammar any) (map[string]string, error) {
	program, err := boot.Model(name, grammar)
	if err != nil {
		return nil, err
	}
	var shared struct {
		boot.Common
		boot.CrawlFlags
		boot.SeedFlags
		boot.FetchFlags
	}
	sharing, err := boot.Model(name, &shared)
	if err != nil {
		return nil, err
	}
	inGroups := make(map[string]bool)
	for _, flag := range sharing.Flags {
		inGroups[flag.Name] = true
	}
	tables := make(map[string]string)
	add := func(table, head string, cells ...string) {
		for i, cell := range cells {
			cells[i] = strings.ReplaceAll(cell, "|", `\|`)
		}
		if tables[table] == "" {
			tables[table] = head
		}
		tables[table] += "| " + strings.Join(cells, " | ") + " |\n"
	}
	for _, flag := range program.Flags {
		if flag.Group != nil && !flag.Hidden {
			add(flag.Group.Key, "| flag | meaning |\n|---|---|\n", flagText(flag), flag.Help)
		}
	}
	for _, verb := range program.Leaves(true) {
		path := verb.Path()
		add("verbs", "| verb | what it does |\n|---|---|\n", "`"+path+arguments(verb)+"`", verb.Help)
		table, _, nested := strings.Cut(path, " ")
		if !nested && table != "plan" {
			table = "verbs"
		}
		for _, flag := range verb.Flags {
			if !flag.Hidden && (flag.Group == nil || !inGroups[flag.Name]) {
				add("of "+table, "| verb | flag | meaning |\n|---|---|---|\n", "`"+path+"`", flagText(flag), flag.Help)
			}
		}
	}
	return tables, nil
}

// arguments are those of a verb, as --help writes them.
func arguments(verb *kong.Node) string {
	var text strings.Builder
	for _, arg := range verb.Positional {
		text.WriteString(" " + arg.Summary())
	}
	return text.String()
}

// flagText is a flag with what it takes.
func flagText(flag *kong.Flag) string {
	text := "--" + flag.Name
	if flag.Tag.Negatable != "" {
		text = "--[no-]" + flag.Name
	}
	if !flag.IsBool() {
		text += " " + flag.FormatPlaceHolder()
	}
	return "`" + text + "`"
}
