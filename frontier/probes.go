package frontier

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"seine/bloom"
	"seine/shard"
)

// errRecord: what is stored of a filter is not what this program writes.
var errRecord = errors.New("frontier: a filter's record is in another form")

// records reads what probing found out about the filters of shard k, as stored
// and as understood. A record that cannot be read is empty in list, and the error
// that tells of it is an errRecord; the others are good then. Cost: one call.
func (f *Frontier) records(ctx context.Context, k int) (stored map[string]string, list []bloom.Record, err error) {
	key := f.keys[k].Probes()
	list = make([]bloom.Record, f.layout.Filters)
	if stored, err = readHash(ctx, f.client, k, key); err != nil {
		if strings.Contains(err.Error(), "WRONGTYPE") {
			err = fmt.Errorf("%w: %s is no hash; frontier check --repair sets it aside: %w", errRecord, key, err)
		}
		return nil, list, err
	}
	var errs []error
	for j := range list {
		text := stored[strconv.Itoa(j)]
		if text == "" {
			continue
		}
		if list[j], err = bloom.ParseRecord(text); err != nil {
			todo := "frontier check --repair deletes it, to measure anew"
			if errors.Is(err, bloom.ErrVersion) {
				todo = "run one version on a crawl"
			}
			errs = append(errs, &shard.Error{Shard: k, Op: "probe", Err: fmt.Errorf("%w: field %d of %s: %w; %s", errRecord, j, key, err, todo)})
		}
	}
	return stored, list, errors.Join(errs...)
}

// unreadable parts the errors of records: the text of one that only says that
// there is none, "" without, and all others.
func unreadable(err error) (text string, other error) {
	if errors.Is(err, errRecord) {
		return err.Error(), nil
	}
	return "", err
}

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
	stored, err := readHash(ctx, c.f.client, c.k, key)
	if err != nil {
		return err
	}
	for j := range c.f.layout.Filters {
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
		ok, err := swap(ctx, c.f.client, c.k, c.keys.Probes(), was, fields{was[0], ""})
		if err != nil {
			return err
		}
		if ok {
			c.sum.mended(c.keys.Probes(), "field %s, which could not be read, is deleted: its filter is measured anew", was[0])
		}
	}
	return nil
}
