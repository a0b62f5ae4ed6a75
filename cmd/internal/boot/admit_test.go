package boot

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seine/frontier"
	"seine/frontier/memory"
)

func TestSeldom(t *testing.T) {
	var s seldom
	start, logged := time.Unix(1_000_000, 0), 0
	for i := range 100 { // ten seconds and a little less, ten times a second
		if s.due(start.Add(time.Duration(i) * time.Second / 10)) {
			logged++
		}
	}
	if logged != 1 || !s.due(start.Add(waitsEvery)) || s.due(start.Add(2*waitsEvery-1)) {
		t.Error(logged)
	}
}

// TestAdmitOtherVersion: a line that another version wrote ends seeding and is
// named; what stands before it was taken.
func TestAdmitOtherVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "links")
	if err := os.WriteFile(path, []byte("{\"v\":1,\"url\":\"http://a.example/\"}\n{\"v\":2,\"url\":\"http://b.example/\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	q, err := memory.New(memory.Config{Layout: frontier.Layout{Shards: 1}, Settings: frontier.DefaultSettings()})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	env := &Env{Stop: t.Context(), Log: slog.New(slog.DiscardHandler)}
	counts, err := (&SeedFlags{File: []string{path}}).Admit(env, q, "")
	if !errors.Is(err, frontier.ErrElement) || !strings.Contains(err.Error(), path+":2: ") || counts.Admitted != 1 {
		t.Errorf("%v, %+v", err, counts)
	}
}
