package redis

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"seine/bloom"
	"seine/frontier"
	"seine/shard"
)

// noShard stands for the keys of a crawl that belong to no shard.
const noShard = -1

// The states of a root.
const (
	stateCreating = "creating" // filters are being reserved; a second creation resumes
	stateReady    = "ready"
	stateDeleting = "deleting" // keys are being removed; a second deletion resumes
)

// root is the hash <crawl>:root. Everything in it changes by swap under the
// revision that was read, so of two that change it at once one starts over.
type root struct {
	layout   frontier.Layout
	settings frontier.Settings
	rev      int64
	epoch    string
	state    string
	paused   string // "", "all", or the paused shards: "0,3"
	raw      map[string]string
}

// Create makes a crawl and opens it. It may run twice at once, and again after
// it died half way: the filters are reserved and the shards marked by whoever
// comes, and the crawl becomes ready when all is there. It fails with ErrExists
// when the crawl is ready already, with ErrLayout when one of another layout
// is being created, with shard.ErrUnfit before anything is written when a master
// has no memory for its filters. Cost: one call a filter and three a shard.
func Create(ctx context.Context, client *shard.Client, crawl string, layout frontier.Layout, settings frontier.Settings) (*Frontier, error) {
	layout = layout.Complete()
	if err := errors.Join(frontier.ValidName(crawl), Validate(layout), settings.Validate()); err != nil {
		return nil, err
	}
	r, err := readRoot(ctx, client, crawl)
	epoch, rev := "", int64(0)
	if errors.Is(err, frontier.ErrNoCrawl) { // perhaps its master lost it, and shards are there
		if epoch, rev, err = survivors(ctx, attach(client, crawl, layout, "")); err != nil {
			return nil, err
		}
	}
	if r == nil || r.state == stateCreating {
		if err = begin(ctx, client, crawl, layout); err != nil {
			return nil, err
		}
	}
	if r, err = claimRoot(ctx, client, crawl, layout, settings, epoch, max(rev, 1)); err != nil {
		return nil, err
	}
	f := attach(client, crawl, r.layout, r.epoch)
	f.settings.Store(&r.settings)
	err = f.withFilters(func(filters *bloom.Filters) error {
		for k := range f.keys {
			if err := f.prepare(ctx, k, r, filters); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// Settings of a creation that broke off give way to those of its end; those
	// of one that somebody else ended meanwhile stay.
	text, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	err = f.alterRoot(ctx, func(r *root) (shard.Fields, error) {
		if r.state != stateCreating || r.raw["settings"] == string(text) {
			return nil, nil
		}
		return shard.Fields{"settings", string(text)}, nil
	})
	if err != nil {
		return nil, err
	}
	if _, err := changeRoot(ctx, client, crawl, shard.Fields{"epoch", r.epoch, "state", stateCreating}, shard.Fields{"state", stateReady}); err != nil {
		return nil, err
	}
	if r, err = f.root(ctx); err != nil {
		return nil, err
	}
	if r.raw["settings"] != string(text) {
		return nil, fmt.Errorf("%w: somebody created %s with other settings at the same time", frontier.ErrExists, crawl)
	}
	return f, nil
}

// begin looks whether a crawl fits, before anything of it is there, and puts it on
// the list of crawls first of all: what breaks off later is seen there.
func begin(ctx context.Context, client *shard.Client, crawl string, layout frontier.Layout) error {
	if err := attach(client, crawl, layout, "").fits(ctx); err != nil {
		return err
	}
	return register(ctx, client, crawl)
}

// claimRoot writes the root of a new crawl, or finds the one that somebody
// began and did not finish. With an epoch it is that of shards which lost their root.
func claimRoot(ctx context.Context, client *shard.Client, crawl string, layout frontier.Layout, settings frontier.Settings, epoch string, rev int64) (*root, error) {
	text, err := json.Marshal(layout)
	if err != nil {
		return nil, err
	}
	set, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	known := epoch != ""
	if !known {
		epoch = rand.Text()
	}
	if _, err := changeRoot(ctx, client, crawl, shard.Fields{"epoch", ""}, shard.Fields{
		"epoch", epoch, "state", stateCreating, "layout", string(text), "settings", string(set),
		"rev", strconv.FormatInt(rev, 10), "created", time.Now().UTC().Format(time.RFC3339),
	}); err != nil {
		return nil, err
	}
	r, err := readRoot(ctx, client, crawl)
	if err != nil {
		return nil, err
	}
	if r.epoch == epoch && !known {
		return r, nil
	}
	switch r.state {
	case stateReady:
		return nil, fmt.Errorf("%w: %s has %d shards; open it, or delete it first", frontier.ErrExists, crawl, r.layout.Shards)
	case stateDeleting:
		return nil, fmt.Errorf("%w: %s is being deleted; delete it again to the end first", frontier.ErrExists, crawl)
	}
	return r, r.layout.Check(layout)
}

// changeRoot sets fields of the root while others are as expected, and reports whether
// it did. Each field but the revision is a right of its own, as files under deploy/acl
// give it.
func changeRoot(ctx context.Context, client *shard.Client, crawl string, expect, set shard.Fields) (bool, error) {
	var rights []string
	for i := 0; i < len(set); i += 2 {
		if set[i] != "rev" {
			rights = append(rights, shard.RootFieldKey(crawl, set[i]))
		}
	}
	return client.CompareAndSet(ctx, noShard, shard.RootKey(crawl), expect, set, rights...)
}

// prepare reserves the filters of shard k and marks the shard as one of this
// creation of the crawl. Filters that are there already stay.
func (f *Frontier) prepare(ctx context.Context, k int, r *root, filters *bloom.Filters) error {
	for j := range f.plan.Filters {
		if err := filters.Reserve(ctx, k, f.keys[k].Filter(j), f.plan); err != nil {
			return err
		}
	}
	meta := f.keys[k].Meta()
	if _, err := f.client.CompareAndSet(ctx, k, meta, shard.Fields{"epoch", ""},
		shard.Fields{"epoch", r.epoch, "rev", strconv.FormatInt(r.rev, 10), "layout", r.raw["layout"]}); err != nil {
		return err
	}
	has, err := f.client.Hash(ctx, k, meta)
	if err != nil {
		return err
	}
	if has["epoch"] != f.epoch {
		return &shard.Error{Shard: k, Op: "create", Err: fmt.Errorf("frontier: keys of an older crawl %s are there; delete it first", f.crawl)}
	}
	return nil
}

// Open binds a client to a crawl that is there. want names what the program
// needs; its zero fields are not compared, and nil wants only a format it can
// read. It fails with ErrNoCrawl or ErrLayout, both values named.
func Open(ctx context.Context, client *shard.Client, crawl string, want *frontier.Layout) (*Frontier, error) {
	if err := frontier.ValidName(crawl); err != nil {
		return nil, err
	}
	r, err := readRoot(ctx, client, crawl)
	if errors.Is(err, frontier.ErrNoCrawl) {
		if names, failed := Names(ctx, client); failed == nil && slices.Contains(names, crawl) {
			return nil, fmt.Errorf("%w: it is on the list of crawls; unless it was deleted, %s", err, rootLoss(ctx, client, crawl))
		}
	}
	if err != nil {
		return nil, err
	}
	switch r.state {
	case stateCreating:
		return nil, fmt.Errorf("%w: the creation of %s has not ended; create it again to finish it", frontier.ErrNoCrawl, crawl)
	case stateDeleting:
		return nil, fmt.Errorf("%w: %s is being deleted", frontier.ErrNoCrawl, crawl)
	}
	if want == nil {
		want = &frontier.Layout{Format: frontier.FormatVersion}
	}
	if err := r.layout.Check(*want); err != nil {
		return nil, err
	}
	if want.OtherSuffixes && want.Suffixes != "" && want.Suffixes != r.layout.Suffixes {
		r.layout.Suffixes = want.Suffixes
		if _, err := changeRoot(ctx, client, crawl, shard.Fields{"epoch", r.epoch}, shard.Fields{"suffixes", want.Suffixes}); err != nil {
			return nil, err
		}
	}
	f := attach(client, crawl, r.layout, r.epoch)
	f.settings.Store(&r.settings)
	return f, nil
}

// OpenOrCreate opens the crawl, or creates it when there is none and want says
// how many shards it is to have. It is for programs that change the crawl, and
// fails with shard.ErrUnfit where they may not.
func OpenOrCreate(ctx context.Context, client *shard.Client, crawl string, want frontier.Layout, settings frontier.Settings) (*Frontier, error) {
	f, err := Open(ctx, client, crawl, &want)
	if errors.Is(err, frontier.ErrNoCrawl) && want.Shards != 0 {
		f, err = Create(ctx, client, crawl, want, settings)
		if errors.Is(err, frontier.ErrExists) { // somebody was faster
			f, err = Open(ctx, client, crawl, &want)
		}
	}
	if err == nil {
		err = f.rights(ctx)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// errRoot: somebody wrote to the root what no program does.
var errRoot = errors.New("frontier: the root of the crawl cannot be read; mend the field, or frontier delete and create it anew")

// readRoot reads and parses the root of a crawl. Where only settings or revision
// cannot be read the rest comes with the error: it is enough to delete the crawl.
func readRoot(ctx context.Context, client *shard.Client, crawl string) (*root, error) {
	h, err := client.Hash(ctx, noShard, shard.RootKey(crawl))
	if err != nil {
		return nil, fmt.Errorf("frontier: reading %s: %w", shard.RootKey(crawl), err)
	}
	if h["epoch"] == "" {
		return nil, fmt.Errorf("%w: %s; frontier list shows what there is, frontier create or seed makes one", frontier.ErrNoCrawl, crawl)
	}
	r := &root{epoch: h["epoch"], state: h["state"], paused: h["paused"], raw: h}
	err = json.Unmarshal([]byte(h["layout"]), &r.layout)
	if err == nil && r.layout.Format == frontier.FormatVersion {
		err = Validate(r.layout)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: layout of %s: %w", errRoot, crawl, err)
	}
	if r.layout.Format != frontier.FormatVersion {
		return nil, fmt.Errorf("%w: format: the crawl has %d, this program %d", frontier.ErrLayout, r.layout.Format, frontier.FormatVersion)
	}
	if s := h["suffixes"]; s != "" {
		r.layout.Suffixes = s
	}
	r.settings = frontier.DefaultSettings()
	if err = json.Unmarshal([]byte(h["settings"]), &r.settings); err != nil {
		err = fmt.Errorf("%w: settings of %s: %w", errRoot, crawl, err)
	} else if r.rev, err = strconv.ParseInt(h["rev"], 10, 64); err != nil {
		err = fmt.Errorf("%w: revision of %s: %w", errRoot, crawl, err)
	}
	if r.state == stateDeleting {
		err = nil // nobody goes by them
	}
	r.settings.Rev = r.rev
	return r, err
}

// holds reports whether the root has all these values.
func (r *root) holds(set shard.Fields) bool {
	for i := 0; i < len(set); i += 2 {
		if r.raw[set[i]] != set[i+1] {
			return false
		}
	}
	return true
}

// pausedIn reports whether the root has shard k paused.
func (r *root) pausedIn(k int) bool {
	if r.paused == "all" {
		return true
	}
	for p := range strings.SplitSeq(r.paused, ",") {
		if p == strconv.Itoa(k) {
			return true
		}
	}
	return false
}
