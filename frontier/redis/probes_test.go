package redis

import (
	"fmt"
	"strings"
	"testing"
)

// What probing found may be unreadable: it is reported, keeps nobody from the
// rest, and a repair moves it away, to make room for a new one.
func TestUnreadableRecords(t *testing.T) {
	t.Parallel()
	l := newLab(t, connect(t), small(1))
	key := l.keys[0].Probes()
	for _, c := range []struct {
		name, text string
		repaired   bool
	}{
		{"rubbish", "rubbish", true},
		{"no numbers", `{"v":1,"all":{"n":-5,"hits":9}}`, true},
		{"no losses", `{"v":1,"ended":-1}`, true},
		{"another version", `{"v":2}`, false},
		{"no hash", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			moved := strings.TrimSuffix(key, "probes") + "moved:probes"
			l.do("DEL", key, moved)
			if c.text == "" {
				l.do("SET", key, "x")
			} else {
				l.do("HSET", key, "0", c.text)
			}
			report, err := l.Report(t.Context())
			if err != nil || !strings.Contains(fmt.Sprint(report.Unread), key) {
				t.Fatalf("report: %+v, %v", report, err)
			}
			if list, err := l.Filters(t.Context(), 0); err != nil || !strings.Contains(list[0].Unread, key) || list[0].Live.N != 0 {
				t.Fatalf("filters: %+v, %v", list, err)
			}
			look, err := AuditCheck(t.Context(), l.Frontier, 0, false)
			if err != nil || (look.Faulted == 1) != c.repaired || !strings.Contains(fmt.Sprint(look.Faults, look.Notes), key) {
				t.Fatalf("check: %+v, %v", look, err)
			}
			look, err = AuditRepair(t.Context(), l.Frontier, 0, false)
			if err != nil || look.Faulted > 0 || (look.Repairs == 1) != c.repaired {
				t.Fatalf("repair: %+v, %v", look, err)
			}
			if !c.repaired {
				return
			}
			if l.do("EXISTS", moved) != int64(1) {
				t.Error("what could not be read is gone")
			}
			l.rounds(1)
			if s := l.live(); s.Unread != "" || s.Live.N != probes {
				t.Errorf("not measured anew: %+v", s)
			}
		})
	}
}
