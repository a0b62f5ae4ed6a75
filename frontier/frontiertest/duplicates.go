package frontiertest

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"sync/atomic"

	"seine/frontier"
)

// content is what a URL brings.
func content(text, url string) frontier.Content {
	sum := sha256.Sum256([]byte(text))
	return frontier.NewContent(sum[:], []byte(url))
}

// duplicates asks for contents, one call a shard.
func (k *kit) duplicates(list ...frontier.Content) []bool {
	k.Helper()
	out := make([]bool, len(list))
	for shard := range k.f.Shards() {
		var some []frontier.Content
		var at []int
		for i, c := range list {
			if k.f.Of(c.Digest) == shard {
				some, at = append(some, c), append(at, i)
			}
		}
		if some == nil {
			continue
		}
		answers := make([]bool, len(some))
		k.must(k.f.Duplicates(k.ctx, shard, some, answers))
		for i, d := range answers {
			out[at[i]] = d
		}
	}
	return out
}

// duplicatesOwn: the URL that brought a content first may bring it again as often as
// it likes, in the same call too; any other is a duplicate, always.
func duplicatesOwn(k *kit) {
	a, b, c := content("text", "u1"), content("text", "u2"), content("other", "u2")
	sameList(k, "first", k.duplicates(a), false)
	for range 2 {
		sameList(k, "its own, another's, and a new one", k.duplicates(a, b, c, a), false, true, false, false)
	}
	x, y := content("new", "u1"), content("new", "u3")
	sameList(k, "within one call", k.duplicates(x, y, x, y), false, true, false, true)
	sameList(k, "after it", k.duplicates(y, x), true, false)
	sameList(k, "a URL that changed to what another brought, and back", k.duplicates(content("other", "u1"), a), true, false)
	s := k.stats()
	same(k, "nothing is known or queued by it", s.Known+s.Queued+s.Admits, 0)
	k.fill("a.example", "p", 1, 3)
	sameList(k, "after an admission", k.duplicates(b, a), true, false)
}

// duplicatesMany: more contents than one call of a script takes, and past what the
// filter was planned for, are all remembered.
func duplicatesMany(k *kit) {
	const n = 3000
	var first, copies []frontier.Content
	for i := range n {
		first = append(first, content(fmt.Sprint("text", i), fmt.Sprint("a", i)))
		copies = append(copies, content(fmt.Sprint("text", i), fmt.Sprint("b", i)))
	}
	for round := range 2 {
		for i, d := range k.duplicates(first...) {
			same(k, fmt.Sprintf("round %d, first %d", round, i), d, false)
		}
		for i, d := range k.duplicates(copies...) {
			same(k, fmt.Sprintf("round %d, copy %d", round, i), d, true)
		}
	}
}

// duplicatesAtOnce: of URLs that bring one content at once, one is first.
func duplicatesAtOnce(k *kit) {
	for round := range 5 {
		var wg sync.WaitGroup
		var first atomic.Int64
		for i := range 8 {
			wg.Go(func() {
				c := content(fmt.Sprint("text", round), fmt.Sprint("u", i))
				answer := make([]bool, 1)
				if err := k.f.Duplicates(k.ctx, k.f.Of(c.Digest), []frontier.Content{c}, answer); err != nil {
					k.Error(err)
				}
				if !answer[0] {
					first.Add(1)
				}
			})
		}
		wg.Wait()
		same(k, "first of eight", first.Load(), 1)
	}
}

// duplicatesRefused: a content of another shard and answers that do not fit are
// errors.
func duplicatesRefused(k *kit) {
	c := content("text", "u")
	own := k.f.Of(c.Digest)
	if err := k.f.Duplicates(k.ctx, own, []frontier.Content{c}, nil); err == nil {
		k.Error("no answers for one content: no error")
	}
	if k.f.Shards() > 1 {
		if err := k.f.Duplicates(k.ctx, (own+1)%k.f.Shards(), []frontier.Content{c}, make([]bool, 1)); err == nil {
			k.Error("a content of another shard: no error")
		}
	}
}
