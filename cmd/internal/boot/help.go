package boot

import (
	"io"
	"slices"

	"github.com/alecthomas/kong"
)

// groups orders --help by task; flags name them by key.
var groups = []kong.Group{
	{Key: "input", Title: "What to crawl:"},
	{Key: "scope", Title: "Which links to follow:"},
	{Key: "recrawl", Title: "Recrawls and duplicates:"},
	{Key: "polite", Title: "How to treat sites:"},
	{Key: "output", Title: "What to keep:"},
	{Key: "run", Title: "This process:"},
	{Key: "net", Title: "Network:"},
	{Key: "crawl", Title: "The crawl and its shards:"},
	{Key: "redis", Title: "Redis:"},
	{Key: "program", Title: "Program:"},
}

// printHelp is kong's help with the groups in their own order: kong has those
// of a command after those of the program.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	node := ctx.Selected()
	if node == nil {
		node = ctx.Model.Node
	}
	var flags []*kong.Flag
	for n := node; n != nil; n = n.Parent {
		flags = append(slices.Clone(n.Flags), flags...)
		n.Flags = nil
	}
	slices.SortStableFunc(flags, func(a, b *kong.Flag) int { return groupOrder(a) - groupOrder(b) })
	node.Flags = flags // the program ends after its help
	return kong.DefaultHelpPrinter(options, ctx)
}

func groupOrder(flag *kong.Flag) int {
	return slices.IndexFunc(groups, func(g kong.Group) bool { return flag.Group != nil && flag.Group.Key == g.Key })
}

// Model is what kong knows of a program.
func Model(name string, grammar any) (*kong.Application, error) {
	app := App{Name: name, Grammar: grammar, Out: io.Discard, Err: io.Discard}
	parser, err := app.parser()
	if err != nil {
		return nil, err
	}
	return parser.Model, nil
}
