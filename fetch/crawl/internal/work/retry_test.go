package work

import (
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	for n, want := range map[int]time.Duration{-1: 5, 0: 5, 1: 10, 3: 40, 30: 3600, 1 << 20: 3600} {
		if got := Doubled(5*time.Second, n); got != want*time.Second {
			t.Errorf("doubled %d times: %v", n, got)
		}
	}
	for range 100 {
		if d := RetryDelay(5*time.Second, 1); d < 10*time.Second || d > 15*time.Second {
			t.Errorf("second retry waits %v", d)
		}
	}
}
