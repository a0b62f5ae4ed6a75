package frontier

import (
	"context"
	"crypto/rand"
	"errors"
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
// says of it by then, until leave is called, which takes it off the list and
// returns the last error of an announcement, if the last one failed. An outage
// of Redis that is over is forgotten. now runs on another goroutine.
func (f *Frontier) Attend(ctx context.Context, now func() Member) (leave func(context.Context) error, err error) {
	id := now().ID
	if err := f.Announce(ctx, now()); err != nil {
		return nil, err
	}
	inner, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var last error
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
			err := f.Announce(try, now())
			cancel()
			if inner.Err() == nil {
				last = err
			}
		}
	})
	return func(ctx context.Context) error {
		stop()
		wg.Wait()
		return errors.Join(last, f.Leave(ctx, id))
	}, nil
}
