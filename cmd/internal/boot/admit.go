package boot

import (
	"errors"

	"seine/frontier"
)

// maxBadShown is how many bad lines are told of one by one.
const maxBadShown = 100

// Admit admits every seed and tells of bad ones in the log, which are never
// fatal. again, if not "", is the request id under which known URLs are queued
// once more.
func (s *SeedFlags) Admit(env *Env, to frontier.Admitter, again string) (frontier.SeedCounts, error) {
	seeder, err := frontier.NewSeeder(to, frontier.SeedConfig{Again: again, OnWait: func(why error, left int) {
		env.Log.Warn("seeds wait", "why", why, "left", left)
	}})
	if err != nil {
		return frontier.SeedCounts{}, err
	}
	bad := func(where string, err error) {
		switch n := seeder.Counts().Bad; {
		case n < maxBadShown:
			env.Log.Warn("bad seed", "at", where, "error", err)
		case n == maxBadShown:
			env.Log.Warn("more bad seeds are only counted")
		}
	}
	err = s.Each(env.In, func(where, text string, fault error) error {
		if fault != nil {
			seeder.Skip()
			bad(where, fault)
			return nil
		}
		var refused *frontier.BadSeed
		err := seeder.Add(env.Stop, text)
		if errors.As(err, &refused) {
			bad(where, refused)
			return nil
		}
		return err
	})
	if flushed := seeder.Flush(env.Stop); err == nil {
		err = flushed
	}
	return seeder.Counts(), err
}
