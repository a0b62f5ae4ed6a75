package frontier

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"seine/frontier/canon"
)

// roomy admits in memory, and answers full for every second candidate of the
// first calls.
type roomy struct {
	mu    sync.Mutex
	known map[string]bool
	full  int
	deaf  int // calls that are not acknowledged, though they took effect
	calls int

	refused map[string]bool
	maxURL  int
}

func (*roomy) Shards() int                 { return 2 }
func (*roomy) Layout() Layout              { return Layout{Shards: 2}.Complete() }
func (r *roomy) Settings() *Settings       { return &Settings{Priority: []string{"/7$=3"}, MaxURL: r.maxURL} }
func (*roomy) Of(fp canon.Fingerprint) int { return int(fp.Site >> 63) }

func (*roomy) NoteSeeds(context.Context, int, []string) error { return nil }

func (r *roomy) Admit(_ context.Context, k int, batch []Candidate, verdicts []Verdict) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	for i, c := range batch {
		switch {
		case r.Of(c.Fingerprint) != k:
			return fmt.Errorf("%s is not of shard %d", c.URL, k)
		case strings.HasSuffix(c.URL, "/7") != (c.Priority == 3):
			return fmt.Errorf("%s is of class %d", c.URL, c.Priority)
		case r.known[c.URL+c.Refetch]:
			verdicts[i] = Seen
		case r.full > 0 && i%2 == 1:
			verdicts[i] = Full
			if r.refused == nil {
				r.refused = make(map[string]bool)
			}
			r.refused[c.URL] = true
		default:
			verdicts[i] = Admitted
			r.known[c.URL+c.Refetch] = true
		}
	}
	r.full--
	if r.deaf--; r.deaf >= 0 {
		return ErrNotAcked
	}
	return nil
}

func TestSeederLosesNothing(t *testing.T) {
	r := &roomy{known: map[string]bool{}, full: 5}
	waits := 0
	s, err := NewSeeder(r, SeedConfig{Batch: 10, MinPause: time.Microsecond, OnWait: func(error, int) { waits++ }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 101 {
		if err := s.AddText(t.Context(), fmt.Sprintf("http://s%d.example/%d", i%7, i)); err != nil {
			t.Fatal(err)
		}
	}
	var bad *BadSeed
	if err := s.AddText(t.Context(), "mailto:x"); !errors.As(err, &bad) || !errors.Is(err, canon.ErrNotCrawlable) {
		t.Error(err)
	}
	for _, v := range []string{"2", `"1"`, "0"} {
		if _, err := s.maker.Element(`{"v":` + v + `,"url":"http://s0.example/0"}`); !errors.Is(err, ErrElement) {
			t.Errorf("version %s: %v", v, err)
		}
	}
	if err := s.AddText(t.Context(), `{"v":1,"url":"http://s0.example/0"}`); err != nil {
		t.Fatal(err)
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := s.Counts()
	if len(r.known) != 101 || c.Admitted != 101 || c.Seen != 1 || c.Bad != 1 || c.Full != int64(len(r.refused)) || c.Full == 0 || waits == 0 {
		t.Errorf("%d known, %+v, %d waits", len(r.known), c, waits)
	}
}

func TestCompactMeta(t *testing.T) {
	for meta, want := range map[string]string{
		"":                                      "",
		"null":                                  "",
		` { "a" : 1.0 } `:                       `{"a":1.0}`,
		`{"k":"v\ud800"}`:                       `{"k":"v\ufffd"}`,
		`{"\uDFFF":"\udc00\ud83d\ude00\uD83D"}`: `{"\ufffd":"\ufffd\ud83d\ude00\ufffd"}`,
		`{"k":"\\ud800\ud83dx\ude00"}`:          `{"k":"\\ud800\ufffdx\ufffd"}`,
		"{\"k\":\"\xff\xfe\"}":                  "{\"k\":\"\ufffd\"}",
	} {
		if got, err := CompactMeta([]byte(meta)); err != nil || got != want {
			t.Errorf("%s: %s %v, want %s", meta, got, err, want)
		}
	}
}

// A seed that is too long is refused for that, and not for what its line looks like.
func TestLongSeeds(t *testing.T) {
	r := &roomy{known: map[string]bool{}, maxURL: 65536}
	s, err := NewSeeder(r, SeedConfig{})
	if err != nil {
		t.Fatal(err)
	}
	url := func(n int) string { return "http://s.example/" + strings.Repeat("x", n-len("http://s.example/")) }
	meta := `{"m":"` + strings.Repeat("y", 16000) + `"}`
	for _, text := range []string{url(65536), fmt.Sprintf(`{"url":%q,"referrer":%q,"from":%q,"redirects":1,"meta":%s}`, url(65535), url(65535), url(65535), meta)} {
		if err := s.AddText(t.Context(), text); err != nil {
			t.Errorf("%d bytes: %.200s", len(text), err)
		}
	}
	for most, n := range map[int]int{65536: 65537, 2048: 2049, 0: 8193} {
		r.maxURL = most
		for _, text := range []string{url(n), `{"url":"` + url(n) + `"}`} {
			if err := s.AddText(t.Context(), text); !errors.Is(err, canon.ErrTooLong) {
				t.Errorf("--max-url %d, %d bytes: %v", most, n, err)
			}
		}
		if err := s.AddText(t.Context(), url(n)); most < 65536 && !strings.Contains(err.Error(), fmt.Sprintf("it has %d bytes, and the crawl takes %d (--max-url)", n, r.Settings().LongestURL())) {
			t.Error(err)
		}
	}
	if err := s.Flush(t.Context()); err != nil || s.Counts().Admitted != 2 {
		t.Errorf("%+v, %v", s.Counts(), err)
	}
}

func TestSeederEndsWithItsContext(t *testing.T) {
	r := &roomy{known: map[string]bool{}, full: 1 << 30}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	s, err := NewSeeder(r, SeedConfig{MinPause: time.Hour, OnWait: func(error, int) { cancel(stop) }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if err := s.AddText(ctx, fmt.Sprintf("http://s.example/%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Flush(ctx); !errors.Is(err, stop) {
		t.Error(err)
	}
}

func TestSeederRepeatsWhatIsNotAcked(t *testing.T) {
	r := &roomy{known: map[string]bool{"http://s.example/3": true}, deaf: 3}
	var whys []error
	s, err := NewSeeder(r, SeedConfig{MinPause: time.Microsecond, OnWait: func(why error, _ int) { whys = append(whys, why) }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if err := s.AddText(t.Context(), fmt.Sprintf("http://s.example/%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := s.Counts(); c.Admitted != 3 || c.Seen != 1 || r.calls != 4 || len(whys) != 3 || !errors.Is(whys[0], ErrNotAcked) {
		t.Errorf("%+v after %d calls, %v", c, r.calls, whys)
	}
}

// kept admits all and remembers them.
type kept struct {
	roomy
	all []Candidate
}

func (k *kept) Admit(_ context.Context, _ int, batch []Candidate, verdicts []Verdict) error {
	k.all = append(k.all, batch...)
	clear(verdicts)
	return nil
}

// A candidate comes back from its line as it was, whatever rules of priority
// the crawl has.
func TestElementComesBack(t *testing.T) {
	maker := NewMaker(Layout{Shards: 2}.Complete())
	for i, raw := range []string{
		"http://a.example/", "https://usr:pw@a.example:8443/%2F//x?q=\"<\\'{}&b=c d", "http://bücher.example/ü?ü#f", "http://10.0.0.1/7",
	} {
		for _, seed := range []bool{true, false} {
			want, err := maker.Make(raw)
			if err != nil {
				t.Fatal(err)
			}
			want.Seed, want.Priority, want.Depth, want.Redirects, want.Waits = seed, uint8(i), uint32(i*1000), uint8(i), true
			if i > 0 {
				want.Trail = want.Trail.AddHop(want.Fingerprint)
			}
			if seed {
				want.Meta = `{"k":["\"",1]}`
			} else {
				want.Referrer, want.From = "http://a.example/list?a=\"", "http://b.example/moved"
			}
			line := AppendElement(nil, &want)
			k := new(kept)
			s, err := NewSeeder(k, SeedConfig{})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(s.AddText(t.Context(), strings.TrimSpace(string(line))), s.Flush(t.Context())); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if len(k.all) != 1 || k.all[0] != want {
				t.Errorf("%s\ngot  %+v\nwant %+v", line, k.all, want)
			}
			if strings.Count(string(line), "\n") != 1 || !strings.HasPrefix(string(line), `{"v":1,`) {
				t.Errorf("no line: %q", line)
			}
			refetch := want
			refetch.Refetch = "x"
			if _, err := s.maker.Make(raw); err != nil || s.AddText(t.Context(), string(AppendElement(nil, &refetch))) != nil || s.Flush(t.Context()) != nil || k.all[1].Refetch == "" {
				t.Errorf("a refetch is lost: %+v", k.all)
			}
		}
	}
}

// silent is roomy, but for one shard that does not answer until the test lets it.
type silent struct {
	roomy
	speaks chan struct{}
}

func (s *silent) Admit(ctx context.Context, k int, batch []Candidate, verdicts []Verdict) error {
	if k == 1 {
		select {
		case <-s.speaks:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.roomy.Admit(ctx, k, batch, verdicts)
}

// A shard that is silent keeps its seeds waiting, and nobody else's.
func TestSeederBesideASilentShard(t *testing.T) {
	r := &silent{roomy: roomy{known: map[string]bool{}}, speaks: make(chan struct{})}
	s, err := NewSeeder(r, SeedConfig{Batch: 10})
	if err != nil {
		t.Fatal(err)
	}
	const n = 5000
	for i := range n {
		if err := s.AddText(t.Context(), fmt.Sprintf("http://s%d.example/x%d", i%70, i)); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Flush(t.Context()) }()
	others := 0
	for i := range n {
		c, _ := NewMaker(r.Layout()).Make(fmt.Sprintf("http://s%d.example/x%d", i%70, i))
		others += 1 - r.Of(c.Fingerprint)
	}
	for end := time.Now().Add(10 * time.Second); s.Counts().Admitted < int64(others); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d seeds of the shard that answers were admitted", s.Counts().Admitted, others)
		}
	}
	select {
	case err := <-ended:
		t.Fatal("it ended before the silent shard answered: ", err)
	default:
	}
	close(r.speaks)
	if err := <-ended; err != nil || s.Counts().Admitted != n {
		t.Errorf("%+v, %v", s.Counts(), err)
	}
}
