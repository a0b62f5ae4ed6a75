package shard_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metrics"

	"seine/shard"
	"seine/shard/shardtest"
)

// Two clients of one process count their calls apart, each in the set that it is
// given, and neither in that of the process.
func TestMetricsOfTwoClients(t *testing.T) {
	t.Parallel()
	s := shardtest.One(t)
	var pages [2]bytes.Buffer
	for i, calls := range []int{1, 3} {
		set := metrics.NewSet()
		c, err := shard.Open(t.Context(), shard.Config{Addrs: s.Addrs[:1], Metrics: set})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		defer func() {
			set.WritePrometheus(&pages[i])
			if want := fmt.Sprintf("seine_shard_call_seconds_count{script=%q} %d\n", count.Name, calls); !strings.Contains(pages[i].String(), want) {
				t.Errorf("client %d: no %q in\n%s", i, want, &pages[i])
			}
		}()
		for range calls {
			run(t, c, 0, count, "k", 1)
		}
	}
	var process bytes.Buffer
	metrics.WritePrometheus(&process, false)
	if strings.Contains(process.String(), "seine_") {
		t.Errorf("the set of the process has\n%s", &process)
	}
}
