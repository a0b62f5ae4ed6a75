package frontier

import (
	"fmt"
	"slices"
	"strings"
)

// ShardFault is what is wrong with one shard, such as {3, "is full", "are full", ""}.
type ShardFault struct {
	Shard     int
	One, Many string // what one shard does, and what several do; "" = the cause says it
	Cause     string // "" = none
}

// FaultTexts names each fault once, with all shards that have it: six shards with one
// cause are one text.
func FaultTexts(faults []ShardFault) []string {
	texts := []string{} // also in JSON a list
	var order []ShardFault
	shards := make(map[ShardFault][]string)
	for _, f := range faults {
		kind := f
		kind.Shard = 0
		if shards[kind] == nil {
			order = append(order, kind)
		}
		if k := fmt.Sprint(f.Shard); !slices.Contains(shards[kind], k) {
			shards[kind] = append(shards[kind], k)
		}
	}
	for _, f := range order {
		last := len(shards[f]) - 1
		text, does := "shard "+shards[f][0], f.One
		if last > 0 {
			text, does = fmt.Sprintf("shards %s and %s", strings.Join(shards[f][:last], ", "), shards[f][last]), f.Many
		}
		if does != "" {
			text += " " + does
		}
		if f.Cause != "" {
			text += ": " + f.Cause
		}
		texts = append(texts, text)
	}
	return texts
}
