package main

import (
	"slices"
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

// Scripts are told apart by the key that each declares and never has; what they
// call, and commands of others, is not theirs.
func TestAddCalls(t *testing.T) {
	took := make(map[string][]time.Duration)
	reply := `[[9,1795905328,64,["evalsha","8a1f","3","c:{1}:meta","c:{1}:queue","c:{1}:never:visit","7"],"127.0.0.1:40004",""],
		[8,1795905328,36,["EVAL","return 1","1","c:{1}:never:visit"],"127.0.0.1:40004",""],
		[7,1795905328,30,["evalsha","99","1","c:{1}:never:admit"],"127.0.0.1:40004",""],
		[6,1795905328,25,["BF.MADD","c:{1}:never:tick","x"],"?:0",""],
		[5,1795905328,21,["evalsha","77","1","c:{1}:meta","... (90 more arguments)"],"127.0.0.1:40004",""]]`
	if err := addCalls(took, []byte(reply)); err != nil {
		t.Fatal(err)
	}
	if len(took) != 2 || !slices.Equal(took["visit"], []time.Duration{64 * time.Microsecond, 36 * time.Microsecond}) ||
		!slices.Equal(took["admit"], []time.Duration{30 * time.Microsecond}) {
		t.Errorf("%v", took)
	}
	for _, broken := range []string{`{}`, `[[1,2,3]]`, `[[1,2,"x",["get"]]]`, `[[1,2,3,4]]`} {
		if err := addCalls(took, []byte(broken)); err == nil {
			t.Errorf("%s is taken", broken)
		}
	}
}
