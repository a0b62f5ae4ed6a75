package redis

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
	if stored, err = f.client.Hash(ctx, k, key); err != nil {
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
