package audit

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"seine/bloom"
	"seine/shard"
)

// checkProbes looks for records that cannot be read, which keep a filter from
// being measured. Those of another version are left to the program that has it.
func (c *checker) checkProbes(ctx context.Context) error {
	key := c.keys.Probes()
	kind, err := c.kindOf(ctx, key)
	if err != nil {
		return err
	}
	if want := typeOf("probes"); kind != want && kind != "none" {
		c.isStrange(key, kind, want)
		return nil
	}
	stored, err := c.client.Hash(ctx, c.k, key)
	if err != nil {
		return err
	}
	for j := range c.f.Layout().Filters {
		field := strconv.Itoa(j)
		if stored[field] == "" {
			continue
		}
		switch _, err := bloom.ParseRecord(stored[field]); {
		case errors.Is(err, bloom.ErrVersion):
			c.report.note(fmt.Sprintf("%s: field %s was not judged: %v", key, field, err))
		case err != nil:
			c.report.fault(key, "field %s cannot be read, and its filter not be measured: %v", field, err)
			c.todo.probes = append(c.todo.probes, field, stored[field])
		}
	}
	return nil
}

// mendProbes deletes records that cannot be read: they are of use to nobody, and
// the next probe begins them anew.
func (c *checker) mendProbes(ctx context.Context) error {
	for i := 0; i < len(c.todo.probes); i += 2 {
		was := c.todo.probes[i : i+2]
		ok, err := c.client.CompareAndSet(ctx, c.k, c.keys.Probes(), was, shard.Fields{was[0], ""})
		if err != nil {
			return err
		}
		if ok {
			c.sum.mended(c.keys.Probes(), "field %s, which could not be read, is deleted: its filter is measured anew", was[0])
		}
	}
	return nil
}
