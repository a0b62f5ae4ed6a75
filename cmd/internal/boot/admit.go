package boot

import (
	"errors"
	"fmt"
	"time"

	"seine/frontier"
)

// maxBadLogged is how many bad lines are logged one by one.
const maxBadLogged = 100

// Admit admits every seed and logs bad ones, which are never
// fatal unless all are bad; one of another version is. The counts hold whatever the error. refetch, if not
// "", is the request id under which known URLs are queued once more.
func (s *SeedFlags) Admit(env *Env, to frontier.Admitter, refetch string) (frontier.SeedCounts, error) {
	var waits seldom
	seeder, err := frontier.NewSeeder(to, frontier.SeedConfig{Refetch: refetch, OnWait: func(why error, left int) {
		if !waits.due(time.Now()) {
			return
		}
		env.Log.Warn("seeds wait", "why", why, "left", left, "do", untilRoom(why))
	}})
	if err != nil {
		return frontier.SeedCounts{}, err
	}
	bad := func(where string, err error) {
		switch n := seeder.Counts().Bad; {
		case n < maxBadLogged:
			env.Log.Warn("bad seed", "at", where, "error", err)
		case n == maxBadLogged:
			env.Log.Warn("more bad seeds are only counted")
		}
	}
	err = s.Each(env.Stop, env.In, func(where, text string, fault error) error {
		if errors.Is(fault, ErrTorn) {
			env.Log.Warn("unfinished file", "at", where, "end", fault)
			return nil
		}
		if fault != nil {
			seeder.Skip()
			bad(where, fault)
			return nil
		}
		var refused *frontier.BadSeed
		err := seeder.AddText(env.Stop, text)
		if errors.Is(err, frontier.ErrElement) { // all that follows is likely to be
			return fmt.Errorf("%s: %w; take the file with the version that wrote it", where, err)
		}
		if errors.As(err, &refused) {
			bad(where, refused)
			return nil
		}
		return err
	})
	if flushed := seeder.Flush(env.Stop); err == nil {
		err = flushed
	}
	counts := seeder.Counts()
	if err == nil && counts.Bad > 0 && counts.Admitted+counts.Seen+counts.Capped == 0 {
		err = Usage("no seed is a URL to crawl: %s, all bad; give whole URLs such as https://example.com/", Number(counts.Bad, "seed"))
	}
	return counts, err
}

// waitsEvery is how often waiting seeds are logged.
const waitsEvery = 10 * time.Second

// seldom lets one through every waitsEvery.
type seldom struct{ last time.Time }

func (s *seldom) due(now time.Time) bool {
	if !s.last.IsZero() && now.Sub(s.last) < waitsEvery {
		return false
	}
	s.last = now
	return true
}

// untilRoom is how the pauses of seeding end.
func untilRoom(why error) string {
	if errors.Is(why, frontier.ErrNotAcked) {
		return "--ack replica needs a replica of every master in step: add or repair one, or leave --ack out"
	}
	return "raise maxmemory, or wait until the crawl makes room"
}
