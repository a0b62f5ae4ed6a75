package frontier

import (
	"fmt"
	"regexp"
	"strings"
)

// ofShard is a text of one shard, and the words after that which plural changes.
var (
	ofShard = regexp.MustCompile(`^(.*?)\bshard (\d+)(\b.*)$`)
	plural  = strings.NewReplacer(" is ", " are ", " does ", " do ", " takes ", " take ")
)

// MergeShards joins texts that differ in nothing but the number of their shard: six
// shards with one cause are one message. The first text may have more before the shard.
func MergeShards(texts []string) []string {
	merged := texts[:0:0] // a list that is empty stays a list, also in JSON
	type group struct {
		at      int
		numbers []string
		parts   []string
	}
	groups := make(map[string]*group)
	for _, text := range texts {
		m := ofShard.FindStringSubmatch(text)
		if m == nil {
			merged = append(merged, text)
			continue
		}
		g := groups[m[3]]
		if g == nil || m[1] != "" && m[1] != g.parts[1] {
			groups[m[3]] = &group{at: len(merged), numbers: []string{m[2]}, parts: m}
			merged = append(merged, text)
			continue
		}
		g.numbers = append(g.numbers, m[2])
		last := len(g.numbers) - 1
		rest := g.parts[3]
		if head, tail, found := strings.Cut(rest, ":"); found {
			rest = plural.Replace(head + " ")
			rest = strings.TrimSuffix(rest, " ") + ":" + tail
		} else {
			rest = strings.TrimSuffix(plural.Replace(rest+" "), " ")
		}
		merged[g.at] = fmt.Sprintf("%sshards %s and %s%s", g.parts[1], strings.Join(g.numbers[:last], ", "), g.numbers[last], rest)
	}
	return merged
}
