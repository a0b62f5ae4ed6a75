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

// A program announces itself every AnnounceEvery; LiveFor after its last word
// it counts as gone.
const (
	AnnounceEvery = 5 * time.Second
	LiveFor       = 20 * time.Second
)

// The kinds of Member.
const (
	KindFetcher = "fetcher"
	KindSeeder  = "seeder" // while one is live the crawl is not finished
)

// Member is one program at work on a crawl.
type Member struct {
	ID      string    `json:"id"` // unique a process
	Kind    string    `json:"kind"`
	Version string    `json:"version"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	Seen    time.Time `json:"seen"`            // set by Members: when it announced itself last
	Rate    float64   `json:"rate"`            // pages a second, lately
	Pages   int64     `json:"pages"`           // settled since it started
	Visits  int       `json:"visits"`          // out now
	Limit   string    `json:"limit,omitempty"` // what limits it now
}

// NewMember describes this process, started now.
func NewMember(kind, version string) Member {
	host, _ := os.Hostname() // a member without a name of its host is one too
	return Member{ID: strings.ToLower(rand.Text()[:12]), Kind: kind, Version: version, Host: host, PID: os.Getpid(), Started: time.Now().UTC()}
}

// Attend announces a member now and then every AnnounceEvery, with what now
// says of it by then, until leave is called, which takes it off the list. An
// announcement that failed is forgotten: the next one, or leave, tells whether
// the outage is over. now runs on another goroutine.
func Attend(ctx context.Context, f Membership, now func() Member) (leave func(context.Context) error, err error) {
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
