package boot

import (
	"testing"
	"time"
)

func TestSeldom(t *testing.T) {
	var s seldom
	start, said := time.Unix(1_000_000, 0), 0
	for i := range 100 { // ten seconds and a little less, ten times a second
		if s.due(start.Add(time.Duration(i) * time.Second / 10)) {
			said++
		}
	}
	if said != 1 || !s.due(start.Add(waitsEvery)) || s.due(start.Add(2*waitsEvery-1)) {
		t.Error(said)
	}
}
