package main

import (
	"testing"
	"time"
)

// A sample counts for the innermost function that has a part.
func TestShareOut(t *testing.T) {
	spent, all := shareOut(`File: fetcher
Type: cpu
Duration: 10s, Total samples = 60ms
-----------+-------------------------------------------------------
      10ms   runtime.memmove
             bytes.(*Buffer).Write
             seine/extract.(*Scanner).Write
             seine/fetch/crawl.(*worker).Write
             seine/fetch.(*Client).Do
-----------+-------------------------------------------------------
      20ms   internal/runtime/syscall.Syscall6
             github.com/redis/go-redis/v9.(*Client).Do
             seine/shard.(*Script).Run
-----------+-------------------------------------------------------
       1ms   runtime.gcDrain
             runtime.systemstack
-----------+-------------------------------------------------------
    2.50ms   main.main
`)
	for part, want := range map[string]time.Duration{"scan": 10 * time.Millisecond, "Redis client": 20 * time.Millisecond, "collection": time.Millisecond, "other": 2500 * time.Microsecond} {
		if spent[part] != want {
			t.Errorf("%s took %v, not %v", part, spent[part], want)
		}
	}
	if all != 33500*time.Microsecond {
		t.Errorf("%v in all", all)
	}
}
