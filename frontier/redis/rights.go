package redis

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"seine/shard"
)

// rights fails with shard.ErrUnfit where our user of Redis may not run what
// scripts do. Rights taken away later are not noticed before they are missed.
// Cost: a call a shard.
func (f *Frontier) rights(ctx context.Context) error {
	for k := range f.keys {
		raw, err := f.run(ctx, k, rightsScript, []string{f.keys[k].Rights(), f.keys[k].Never(rightsScript.Name)}, 0)
		var no []string
		switch {
		case err != nil && strings.Contains(err.Error(), "NOPERM"):
			no = []string{"EVALSHA"}
		case err != nil:
			return err
		}
		for _, v := range shard.Array(raw) {
			no = append(no, shard.Text(v))
		}
		if len(no) == 0 {
			continue
		}
		slices.Sort(no)
		return &shard.Error{Shard: k, Op: "open", Err: fmt.Errorf("%w: this user of Redis may not run %s on keys such as %s, and scripts would break off in the middle; allow it (ACL SETUSER … +%s)",
			shard.ErrUnfit, strings.Join(no, ", "), f.keys[k].Meta(), strings.ToLower(strings.Join(no, " +")))}
	}
	return nil
}
