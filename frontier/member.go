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
// it counts as gone. Unless it left, it is shown as vanished for VanishedFor, the last
// thousand of them.
const (
	AnnounceEvery = 5 * time.Second
	LiveFor       = 20 * time.Second
	VanishedFor   = time.Hour
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
	Seen    time.Time `json:"seen"`              // set by Members: when it announced itself last
	Rate    float64   `json:"rate"`              // pages a second, lately
	Growth  float64   `json:"growth"`            // URLs that it found less those that it settled, a second, over some minutes
	Pages   int64     `json:"pages"`             // settled since it started
	Bytes   int64     `json:"bytes,omitempty"`   // on the wire, since it started
	Visits  int       `json:"visits"`            // out now
	Limit   string    `json:"limit,omitempty"`   // what limits it now
	Tokens  string    `json:"tokens,omitempty"`  // set by Announce: how the tokens of its visits begin
	Ended   string    `json:"ended,omitempty"`   // how its run ended, a word of its own; "" = it goes on, or vanished
	Crowded bool      `json:"crowded,omitempty"` // hosts wait for their share of an address, see Present
	Room    bool      `json:"room,omitempty"`    // it could fetch more sites than it holds, and holds less than its fair share
	Seeding bool      `json:"seeding,omitempty"` // it admits seeds: the crawl is not finished, whatever its kind
}

// Present is how many programs are at work on a crawl, and how many of them say so of
// themselves.
type Present struct {
	Programs int
	Crowded  int // as Member.Crowded
	Room     int // as Member.Room
}

// LimitReplica is Limit of a program whose new URLs no replica acknowledges.
const LimitReplica = "replica"

// EndFinished is how a run ended that left nothing to do.
const EndFinished = "finished"

// RunsKept is how many runs of fetchers stay on record.
const RunsKept = 100

// OnRecord reports whether the run of a member stays on record: those that fetch.
func (m *Member) OnRecord() bool { return m.Kind != KindSeeder }

// Fleet is what the members of a crawl say together.
type Fleet struct {
	Rate     float64        `json:"rate"`       // pages a second of all fetchers, lately
	Growth   float64        `json:"growth"`     // URLs a second by which all fetchers make what is left grow, below 0 shrink
	Limits   map[string]int `json:"limited_by"` // fetchers by what limits them
	Versions map[string]int `json:"versions"`   // programs by version
}

// FleetOf adds up what members say.
func FleetOf(members []Member) Fleet {
	all := Fleet{Limits: map[string]int{}, Versions: map[string]int{}}
	for i := range members {
		m := &members[i]
		all.Versions[m.Version]++
		if m.Kind == KindFetcher {
			all.Rate += m.Rate
			all.Growth += m.Growth
			all.Limits[m.Limit]++
		}
	}
	return all
}

// NewMember describes this process, started now.
func NewMember(kind, version string) Member {
	host, _ := os.Hostname() // a member without a name of its host is one too
	return Member{ID: strings.ToLower(rand.Text()[:12]), Kind: kind, Version: version, Host: host, PID: os.Getpid(), Started: time.Now().UTC()}
}

// Attendance keeps a member on the list until Leave.
type Attendance struct {
	f         Membership
	now       func() Member
	announced func(Present, Member)
	stop      context.CancelFunc
	wg        sync.WaitGroup
}

// Attend announces a member now and then every AnnounceEvery, with what now
// says of it by then. It waits for the first announcement no longer than that. logged, unless it is nil, is called each time with who
// is at work, and what was announced. An announcement that failed is forgotten: the next one, or Leave,
// tells whether the outage is over. now and logged run on another goroutine.
func Attend(ctx context.Context, f Membership, now func() Member, announced func(Present, Member)) (*Attendance, error) {
	inner, stop := context.WithCancel(ctx)
	a := &Attendance{f: f, now: now, announced: announced, stop: stop}
	first, cancel := context.WithTimeout(ctx, AnnounceEvery)
	err := a.Announce(first)
	cancel()
	if err != nil && (ctx.Err() != nil || first.Err() != context.DeadlineExceeded) {
		stop()
		return nil, err
	}
	a.wg.Go(func() {
		ticker := time.NewTicker(AnnounceEvery)
		defer ticker.Stop()
		for {
			select {
			case <-inner.Done():
				return
			case <-ticker.C:
			}
			try, cancel := context.WithTimeout(inner, AnnounceEvery)
			_ = a.Announce(try)
			cancel()
		}
	})
	return a, nil
}

// Announce tells at once what has changed.
func (a *Attendance) Announce(ctx context.Context) error {
	m := a.now()
	present, err := a.f.Announce(ctx, m)
	if err == nil && a.announced != nil {
		a.announced(present, m)
	}
	return err
}

// Leave takes the member off the list; ended is how its run ended.
func (a *Attendance) Leave(ctx context.Context, ended string) error {
	a.stop()
	a.wg.Wait()
	m := a.now()
	m.Ended = ended
	if err := a.f.Leave(ctx, m); err != nil {
		return fmt.Errorf("frontier: leaving the list of members, which forgets %s by itself after %v: %w", m.ID, LiveFor, err)
	}
	return nil
}
