package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"seine/cmd/internal/boot"
	"seine/frontier"
	"seine/frontier/ask"
)

// state is what the page shows all the time.
type state struct {
	Report   *ask.Progress `json:"report"`  // as stats has it; nil before the first reading
	Filters  []fill        `json:"filters"` // by shard; none where there are no filters
	Points   []Point       `json:"points"`
	Fault    string        `json:"fault,omitempty"` // why the crawl cannot be read now
	Changes  bool          `json:"changes"`
	Settings []string      `json:"settings,omitempty"` // those that can be changed here
}

func (s *server) now(r *http.Request) (any, error) {
	since, _ := strconv.ParseInt(r.URL.Query().Get("since"), 10, 64) // none: all
	report, fills, points, err := s.watch.now(since)
	st := state{Report: report, Filters: fills, Points: points, Changes: s.cfg.Changes, Settings: s.settings}
	if err != nil {
		st.Fault = err.Error()
	}
	return st, nil
}

// reason is an answer, and its lines for people.
type reason struct {
	*ask.Answer
	Rows []ask.Row `json:"rows"`
}

func (s *server) why(r *http.Request) (any, error) {
	q := r.URL.Query()
	a, err := ask.Why(r.Context(), s.cfg.Frontier, ask.WhyQuery{URL: strings.TrimSpace(q.Get("url")), From: strings.TrimSpace(q.Get("from")), Robots: boot.ReadRobots})
	if err != nil {
		return nil, err
	}
	return reason{a, a.Rows()}, nil
}

// sites are the first of an order, or one site.
func (s *server) sites(r *http.Request) (any, error) {
	q := ask.SitesQuery{By: r.URL.Query().Get("by"), Site: strings.TrimSpace(r.URL.Query().Get("site"))}
	if q.By != "" && !slices.Contains(ask.Orders, q.By) {
		return nil, fmt.Errorf("%w: sites by %q, must be one of %s", errAsked, q.By, strings.Join(ask.Orders, ", "))
	}
	if q.Site == "" {
		return s.watch.sites(r.Context(), q)
	}
	if _, err := s.siteOf(q.Site); err != nil {
		return nil, err
	}
	return ask.Sites(r.Context(), s.cfg.Frontier, q)
}

func (s *server) siteOf(text string) (string, error) {
	site, err := s.cfg.Frontier.Layout().SiteOf(strings.TrimSpace(text))
	if err != nil {
		return "", fmt.Errorf("%w: %w", errAsked, err)
	}
	return site, nil
}

func (s *server) stopped(r *http.Request) (any, error) {
	list, err := s.cfg.Frontier.Stopped(r.Context())
	if list == nil {
		list = []frontier.Stop{}
	}
	return list[:min(len(list), shownMost)], err
}

// shownMost is how many dead letters or sites a page has.
const shownMost = 200

// deadLetter is a dead letter as the page has it.
type deadLetter struct {
	ID       string `json:"id"`
	Shard    int    `json:"shard"`
	URL      string `json:"url"` // without credentials
	Site     string `json:"site"`
	Cause    string `json:"cause"`
	Text     string `json:"text"`
	Attempts uint8  `json:"attempts"`
	Depth    uint32 `json:"depth"`
}

// idOf names a dead letter without its content.
func idOf(raw string) string {
	sum := sha256.Sum256([]byte(raw))
	return hex.EncodeToString(sum[:12])
}

func (s *server) dead(r *http.Request) (any, error) {
	list := []deadLetter{}
	filter := frontier.DeadFilter{Cause: r.URL.Query().Get("cause"), Limit: shownMost}
	if filter.Cause == "" {
		return nil, fmt.Errorf("%w: give a cause", errAsked)
	}
	_, err := frontier.WalkDead(r.Context(), s.cfg.Frontier, filter, func(k int, batch []frontier.DeadLetter) (int, error) {
		for _, d := range batch {
			list = append(list, deadLetter{idOf(d.Raw), k, frontier.LogURL(d.URL), d.Site, d.Cause, d.Text, d.Attempts, d.Depth})
		}
		return 0, nil
	})
	return list, err
}

// change is what somebody wants changed.
type change struct {
	Do     string `json:"do"` // pause, resume, block, unblock, retry, set
	Site   string `json:"site"`
	Shard  *int   `json:"shard"`
	Cause  string `json:"cause"`
	ID     string `json:"id"` // of a dead letter; none: all of the cause
	Reason string `json:"reason"`
	Name   string `json:"name"`  // set: of a setting, of Site alone where that is given
	Value  string `json:"value"` // as its flag has it, several one a line
}

// change does it, and returns what was done in one line.
func (s *server) change(r *http.Request) (any, error) {
	var c change
	in := json.NewDecoder(r.Body)
	in.DisallowUnknownFields()
	if err := in.Decode(&c); err != nil {
		return nil, fmt.Errorf("%w: %w", errAsked, err)
	}
	done, err := s.apply(r.Context(), c)
	if err != nil {
		return nil, err
	}
	s.cfg.Log.Info("changed from the page", "do", c.Do, "what", done)
	return map[string]string{"done": done}, nil
}

func (s *server) apply(ctx context.Context, c change) (string, error) {
	f := s.cfg.Frontier
	switch c.Do {
	case "pause", "resume":
		paused := c.Do == "pause"
		if c.Site != "" {
			return s.alter(ctx, c, frontier.SiteChange{Paused: &paused, Reason: c.Reason})
		}
		k := -1
		if c.Shard != nil {
			if k = *c.Shard; k < 0 || k >= f.Shards() {
				return "", fmt.Errorf("%w: the crawl has shards 0 to %d", errAsked, f.Shards()-1)
			}
			return fmt.Sprintf("%s: shard %d", c.Do, k), f.Pause(ctx, k, paused)
		}
		return c.Do + ": the crawl", f.Pause(ctx, k, paused)
	case "block", "unblock":
		blocked := c.Do == "block"
		if blocked && strings.TrimSpace(c.Reason) == "" {
			return "", fmt.Errorf("%w: a block needs a reason", errAsked)
		}
		return s.alter(ctx, c, frontier.SiteChange{Blocked: &blocked, Reason: c.Reason})
	case "retry":
		return s.retry(ctx, c)
	case "set":
		return s.set(ctx, c)
	}
	return "", fmt.Errorf("%w: there is no change %q", errAsked, c.Do)
}

func (s *server) alter(ctx context.Context, c change, what frontier.SiteChange) (string, error) {
	site, err := s.siteOf(c.Site)
	if err != nil {
		return "", err
	}
	f := s.cfg.Frontier
	return c.Do + ": " + site, f.Alter(ctx, frontier.ShardOf(f, site), site, what)
}

// retry queues one dead letter, or all of a cause, once more.
func (s *server) retry(ctx context.Context, c change) (string, error) {
	if c.Cause == "" {
		return "", fmt.Errorf("%w: give a cause", errAsked)
	}
	f := s.cfg.Frontier
	back, found := 0, false
	_, err := frontier.WalkDead(ctx, f, frontier.DeadFilter{Cause: c.Cause}, func(k int, batch []frontier.DeadLetter) (int, error) {
		if c.ID != "" {
			var one []frontier.DeadLetter
			for _, d := range batch {
				if !found && idOf(d.Raw) == c.ID {
					one, found = append(one, d), true
				}
			}
			if batch = one; len(batch) == 0 {
				return 0, nil
			}
		}
		n, err := f.RetryDead(ctx, k, batch)
		back += n
		return n, err
	})
	if err == nil && back == 0 {
		return "", fmt.Errorf("%w: that dead letter is gone", errAsked)
	}
	return fmt.Sprintf("retry: %d of cause %s", back, c.Cause), err
}

// set changes a setting as `frontier set` does.
func (s *server) set(ctx context.Context, c change) (string, error) {
	flags, err := boot.ParseSetting(c.Name, c.Value)
	if err != nil {
		return "", err
	}
	if c.Site != "" {
		site, err := s.siteOf(c.Site)
		if err != nil {
			return "", err
		}
		if !slices.Contains(boot.SiteSettings, c.Name) {
			return "", fmt.Errorf("%w: %s is of the whole crawl; of one site there are %s", errAsked, c.Name, strings.Join(boot.SiteSettings, ", "))
		}
		_, _, err = flags.StoreSite(ctx, s.cfg.Frontier, site, []string{c.Name}, false)
		return fmt.Sprintf("set: %s of %s is %s", c.Name, site, c.Value), err
	}
	before, after, err := flags.Store(ctx, s.cfg.Frontier)
	if err != nil {
		return "", err
	}
	changes := frontier.Changes(before, after)
	if len(changes) == 0 {
		return fmt.Sprintf("set: %s was %s already", c.Name, c.Value), nil
	}
	return fmt.Sprintf("set: %s was %q, is %q", changes[0].Flag, changes[0].Before, changes[0].After), nil
}
