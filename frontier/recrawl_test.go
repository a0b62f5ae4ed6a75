package frontier

import (
	"strings"
	"testing"
	"time"
)

func TestRecrawlIntervals(t *testing.T) {
	r := RecrawlInterval{Min: time.Hour, Max: 5 * time.Hour}
	var got []time.Duration
	last := time.Duration(0)
	for _, unchanged := range []bool{true, true, true, true, true, false, false, false, true} {
		last = r.Next(last, unchanged)
		got = append(got, last)
	}
	want := []time.Duration{time.Hour, 90 * time.Minute, 135 * time.Minute, 202*time.Minute + 30*time.Second, 5 * time.Hour, 150 * time.Minute, 75 * time.Minute, time.Hour, 90 * time.Minute}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("intervals are %v, want %v", got, want)
		}
	}
	if fixed := (RecrawlInterval{Min: time.Hour, Max: time.Hour}); fixed.Next(time.Hour, true) != time.Hour || fixed.Next(time.Hour, false) != time.Hour {
		t.Error("an interval without a longest one does not stay")
	}
	if got := (RecrawlInterval{Min: time.Hour, Max: 2 * time.Hour}).Next(100*time.Hour, false); got != 2*time.Hour {
		t.Errorf("after the rule changed: %v", got)
	}
}

func TestRecrawlRules(t *testing.T) {
	find, err := Recrawler([]string{`\?a=b=10m`, `/news/=1h..24h`, `.=24h`})
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]RecrawlInterval{
		"https://a.example/?a=b":    {10 * time.Minute, 10 * time.Minute},
		"https://a.example/news/1":  {time.Hour, 24 * time.Hour},
		"https://a.example/other/1": {24 * time.Hour, 24 * time.Hour},
	} {
		if got, ok := find([]byte(url)); !ok || got != want {
			t.Errorf("%s: %v %v, want %v", url, got, ok, want)
		}
	}
	if none, err := Recrawler(nil); none != nil || err != nil {
		t.Error("without rules something is recrawled")
	}
	for _, bad := range []string{"", ".", ".=", ".=x", ".=1h..", ".=2h..1h", ".=0s", ".=-1h", "(=1h", ".=200000h", ".=1h..x"} {
		if _, _, err := ParseRecrawl(bad); err == nil || !strings.Contains(err.Error(), "recrawl") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
