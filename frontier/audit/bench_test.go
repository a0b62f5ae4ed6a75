package audit_test

import (
	"fmt"
	"testing"

	"seine/frontier"
	"seine/frontier/audit"
	"seine/frontier/redis"
	"seine/shard"
	"seine/shard/shardtest"
)

// BenchmarkCheck checks a shard of many sites that have one URL each.
func BenchmarkCheck(b *testing.B) {
	const sites = 50_000
	client, err := shard.Open(b.Context(), shard.Config{Addrs: shardtest.One(b).Addrs})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	f, err := redis.Create(b.Context(), client, "crawl", frontier.Layout{Shards: 1}, frontier.DefaultSettings())
	if err != nil {
		b.Fatal(err)
	}
	for from := 0; from < sites; from += 500 {
		var batch []frontier.Candidate
		for i := from; i < from+500; i++ {
			batch = append(batch, candidate(fmt.Sprintf("site%d.example", i), 1))
		}
		if err := f.Admit(b.Context(), 0, batch, make([]frontier.Verdict, len(batch))); err != nil {
			b.Fatal(err)
		}
	}
	for _, urls := range []bool{false, true} {
		b.Run(fmt.Sprint("urls=", urls), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := audit.Check(b.Context(), f, 0, urls)
				if err != nil || r.Faulted != 0 || r.Sites != sites || urls && r.Probed != sites {
					b.Fatalf("%+v, %v", r, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/sites, "us/site")
		})
	}
}
