package memory

import (
	"testing"
	"time"

	"seine/frontier"
)

// What waits to be recrawled is there after a crash, and after one while it was
// leased: then it is leased first, with what is known of its last fetch.
func TestRecrawlReopened(t *testing.T) {
	c := &testClock{now: time.Now()}
	f, err := New(Config{Now: c.Now, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	admitURLs(t, f, "a.example", 3)
	v := acquireAll(t, f, 3)[0]
	st := frontier.Settlement{Lease: v.Lease, Release: &frontier.Release{}}
	for i, it := range v.Items {
		next := frontier.Next{Entry: it.Entry, Key: uint64(i)<<63 | 7}
		next.Last = frontier.Fetched{Interval: time.Hour, At: 5, ETag: "x"}
		st.Outcomes = append(st.Outcomes, frontier.Outcome{Index: it.Index, Kind: frontier.Recrawl, NotBefore: time.Duration(1+i) * time.Hour, Next: &next})
	}
	st.Outcomes[2].Next.Key = 9
	if _, err := f.Settle(t.Context(), v.Shard, []frontier.Settlement{st}); err != nil {
		t.Fatal(err)
	}
	count := func(recrawls, queued int64) {
		t.Helper()
		s, err := f.Stats(t.Context())
		if err != nil || s[0].Recrawls != recrawls || s[0].Queued != queued {
			t.Fatalf("%+v %v, want %d recrawls and %d queued", s[0], err, recrawls, queued)
		}
	}
	f = reopened(t, f, true)
	count(3, 0)
	if got := acquireAll(t, f, 3); len(got) != 0 {
		t.Fatalf("leased %+v before its time", got)
	}
	c.Advance(90 * time.Minute)
	if v = acquireAll(t, f, 3)[0]; len(v.Items) != 1 || v.Items[0].URL != st.Outcomes[0].Next.URL {
		t.Fatalf("%+v", v)
	}
	f = reopened(t, f, true)
	count(2, 1)
	c.Advance(time.Minute)
	v = acquireAll(t, f, 3)[0]
	if len(v.Items) != 1 || v.Items[0].Lost != 1 || v.Items[0].Last != st.Outcomes[0].Next.Last {
		t.Fatalf("%+v", v)
	}
	f = reopened(t, f, false)
	count(2, 1)
	c.Advance(3 * time.Hour)
	f = reopened(t, f, true)
	if s, err := f.Stats(t.Context()); err != nil || s[0].Recrawled != 1 || s[0].Done != 3 {
		t.Fatalf("%+v %v", s, err)
	}
	for range 3 {
		for _, v := range acquireAll(t, f, 3) {
			settleAll(t, f, v)
		}
		c.Advance(time.Minute)
	}
	count(0, 0)
}

// settleAll settles all of a visit as done.
func settleAll(t *testing.T, f *Frontier, v frontier.Visit) {
	t.Helper()
	st := frontier.Settlement{Lease: v.Lease, Release: &frontier.Release{}}
	for _, it := range v.Items {
		st.Outcomes = append(st.Outcomes, frontier.Outcome{Index: it.Index})
	}
	if _, err := f.Settle(t.Context(), v.Shard, []frontier.Settlement{st}); err != nil {
		t.Fatal(err)
	}
}
