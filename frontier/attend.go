package frontier

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// NewMember describes this process, started now.
func NewMember(kind, version string) Member {
	host, _ := os.Hostname() // a member without a name of its host is one too
	return Member{ID: strings.ToLower(rand.Text()[:12]), Kind: kind, Version: version, Host: host, PID: os.Getpid(), Started: time.Now().UTC()}
}

// Attend announces a member now and then every AnnounceEvery, with what now
// says of it by then, until leave is called, which takes it off the list. An
// announcement that failed is forgotten: the next one, or leave, tells whether
// the outage is over. now runs on another goroutine.
func (f *Frontier) Attend(ctx context.Context, now func() Member) (leave func(context.Context) error, err error) {
	id := now().ID
	if err := f.Announce(ctx, now()); err != nil {
		return nil, err
	}
	inner, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(AnnounceEvery)
		defer ticker.Stop()
		for {
			select {
			case <-inner.Done():
				return
			case <-ticker.C:
			}
			try, cancel := context.WithTimeout(inner, AnnounceEvery)
			_ = f.Announce(try, now())
			cancel()
		}
	})
	return func(ctx context.Context) error {
		stop()
		wg.Wait()
		if err := f.Leave(ctx, id); err != nil {
			return fmt.Errorf("frontier: leaving the list of members, which forgets %s by itself after %v: %w", id, LiveFor, err)
		}
		return nil
	}, nil
}
