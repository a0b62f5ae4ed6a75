package frontier

import (
	"testing"
	"time"
)

func TestWallPause(t *testing.T) {
	for count, want := range map[int]time.Duration{0: 0, 2: 0, 3: time.Hour, 4: 2 * time.Hour, 7: 16 * time.Hour, 8: 24 * time.Hour, 1000: 24 * time.Hour} {
		if got := WallPause(count); got != want {
			t.Errorf("after %d walls %v, want %v", count, got, want)
		}
	}
}
