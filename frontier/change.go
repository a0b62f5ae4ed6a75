package frontier

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// ErrDiffers marks settings that a program was given and that are other than the
// crawl's.
var ErrDiffers = errors.New("differs from the crawl")

// Change is one setting that differs, under the name of its flag.
type Change struct {
	Flag   string `json:"setting"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Changes names the settings that differ between two.
func Changes(before, after *Settings) []Change {
	var list []Change
	b, a := reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem()
	for i := range b.NumField() {
		name, _, _ := strings.Cut(b.Type().Field(i).Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		was, is := formatSetting(b.Field(i)), formatSetting(a.Field(i))
		if was != is || name == "sites" && !reflect.DeepEqual(before.Sites, after.Sites) {
			list = append(list, Change{strings.ReplaceAll(name, "_", "-"), was, is})
		}
	}
	return list
}

// formatSetting is a setting for people; of site rules it shows no secret.
func formatSetting(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case []string:
		return strings.Join(x, " ")
	case []SiteRule:
		var names []string
		for _, r := range x {
			names = append(names, r.Match)
		}
		return strings.Join(names, " ")
	default:
		return fmt.Sprint(x)
	}
}

// Compare fails with ErrDiffers where apply, which puts what a program was given
// into settings, changes those of the crawl; the message names both values and how
// to change the crawl, which is in Redis or in the directory dir.
func Compare(stored *Settings, apply func(*Settings), dir string) error {
	wanted := *stored
	apply(&wanted)
	changes := Changes(stored, &wanted)
	if changes == nil {
		return nil
	}
	var parts []string
	for _, d := range changes {
		parts = append(parts, fmt.Sprintf("--%s: the crawl has %q, given %q", d.Flag, d.Before, d.After))
	}
	if dir != "" {
		dir = "--state " + dir + " "
	}
	return fmt.Errorf("%w: %s; leave it out, or change the crawl with `frontier set %s--%s`",
		ErrDiffers, strings.Join(parts, "; "), dir, changes[0].Flag)
}
