package boot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"seine/frontier"
)

// SiteSettings names the settings that one site may have of its own.
var SiteSettings = []string{"delay", "per-site", "max-per-site"}

// layoutFlags are those of CrawlFlags that are fixed when a crawl is created.
var layoutFlags = []string{"shards", "limit-by", "plan-urls", "error-rate", "strip-params", "sort-query", "other-suffixes"}

// Store gives a crawl the settings that were given, and returns those before and
// after. With --walls off it also ends the back-offs from walls.
func (c *CrawlFlags) Store(ctx context.Context, f frontier.Operated) (before, after *frontier.Settings, err error) {
	before, after, err = f.Set(ctx, func(s *frontier.Settings) error {
		c.Apply(s)
		return CheckAgent(s)
	})
	if err == nil && c.Walls != nil && !after.SeesWalls() {
		_, err = frontier.EndWalls(ctx, f)
	}
	return before, after, err
}

// StoreSite gives one site of a crawl those of SiteSettings that are named, after a
// reset those of the crawl else. It returns the crawl's settings before and after.
func (c *CrawlFlags) StoreSite(ctx context.Context, f frontier.Operated, site string, names []string, reset bool) (before, after *frontier.Settings, err error) {
	return f.Set(ctx, func(s *frontier.Settings) error {
		s.SetSite(site, func(r *frontier.SiteRule) {
			if reset {
				r.Delay, r.PerSite, r.MaxPages = nil, 0, nil
			}
			for _, name := range names {
				switch name {
				case "delay":
					r.Delay = c.Delay
				case "per-site":
					r.PerSite = *c.PerSite
				case "max-per-site":
					r.MaxPages = c.MaxPerSite
				}
			}
		})
		return nil
	})
}

// settingsParser reads the flags of a crawl into c, as programs do.
func settingsParser(c *CrawlFlags) (*kong.Kong, error) {
	return kong.New(c, append(readers(), kong.Name("set"), kong.ExplicitGroups(groups), kong.NoDefaultHelp())...)
}

// SettingNames names all settings that can be changed, by name.
func SettingNames() ([]string, error) {
	parser, err := settingsParser(new(CrawlFlags))
	if err != nil {
		return nil, fmt.Errorf("boot: %w", err)
	}
	var names []string
	for _, flag := range parser.Model.Flags {
		if !flag.Hidden && !slices.Contains(layoutFlags, flag.Name) {
			names = append(names, flag.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// ParseSetting reads one setting as its flag is read. A flag that may be repeated has
// one value a line.
func ParseSetting(name, text string) (*CrawlFlags, error) {
	names, err := SettingNames()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(names, name) {
		return nil, Usage("there is no setting %q that can be changed; there are %s", name, strings.Join(names, ", "))
	}
	c := new(CrawlFlags)
	parser, err := settingsParser(c)
	if err != nil {
		return nil, fmt.Errorf("boot: %w", err)
	}
	var args []string
	for value := range strings.Lines(text + "\n") {
		args = append(args, "--"+name+"="+strings.TrimSpace(value))
	}
	if _, err := parser.Parse(args); err != nil {
		return nil, usage(rephrase(err))
	}
	return c, c.Check()
}
