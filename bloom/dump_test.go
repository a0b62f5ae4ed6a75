package bloom_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"seine/bloom"
	"seine/shard"
	"seine/shard/shardtest"
)

// Whatever is wrong with a dump is said, and the filters stay as they were.
func TestDamagedDump(t *testing.T) {
	t.Parallel()
	plan := bloom.Plan{Shards: 1, Filters: 2, Capacity: 1000, ErrorRate: 1e-3, Expansion: 2}
	s := newShelf(t, shardtest.One(t), plan)
	s.each("BF.MADD", 0, 5000)
	var file bytes.Buffer
	if err := s.filters.Dump(within(t), set(0, s.keys, plan), &file); err != nil {
		t.Fatal(err)
	}
	sound := file.Bytes()
	s.each("BF.MADD", 5000, 5100)
	before := s.info(0)
	refused := func(what string, dump []byte) error {
		t.Helper()
		err := s.filters.Load(within(t), set(0, s.keys, plan), bytes.NewReader(dump), true, nil)
		if err == nil {
			t.Fatalf("%s: loaded", what)
		}
		if after := s.info(0); after != before {
			t.Fatalf("%s: filter is %+v, was %+v", what, after, before)
		}
		if left := s.server.Nodes[0].Do(t, "dbsize"); left != int64(plan.Filters) {
			t.Fatalf("%s: %v keys are left", what, left)
		}
		return err
	}
	for _, cut := range []int{0, 5, 12, 20, 100, len(sound) / 3, len(sound) / 2, len(sound) - 25, len(sound) - 24, len(sound) - 1} {
		err := refused(fmt.Sprint("cut at ", cut), sound[:cut])
		if !errors.Is(err, bloom.ErrDamaged) {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
	for i := 0; i < len(sound); i += 1 + len(sound)/50 {
		bad := bytes.Clone(sound)
		bad[i] ^= 0x10
		if err := refused(fmt.Sprint("altered at ", i), bad); i != 11 && !errors.Is(err, bloom.ErrDamaged) {
			t.Errorf("altered at %d: %v", i, err)
		}
	}
	if err := refused("longer", append(bytes.Clone(sound), 0)); !errors.Is(err, bloom.ErrDamaged) {
		t.Errorf("longer: %v", err)
	}
	if err := refused("a frame left out", without(t, sound, 2)); !errors.Is(err, bloom.ErrDamaged) {
		t.Errorf("a frame left out: %v", err)
	}
	newer := bytes.Clone(sound)
	newer[11] = 2
	if err := refused("newer", newer); !strings.Contains(err.Error(), "version 2") {
		t.Errorf("newer: %v", err)
	}
	half := bytes.Clone(sound)
	half[len(half)/2] ^= 1
	if err := refused("altered in the middle", half); !strings.Contains(err.Error(), "offset") {
		t.Errorf("the place of the damage is not said: %v", err)
	}
	if err := s.filters.Load(within(t), set(0, s.keys, plan), bytes.NewReader(sound), true, nil); err != nil {
		t.Fatal(err)
	}
	if found := s.each("BF.MEXISTS", 0, 5000); found != 5000 {
		t.Errorf("%d of 5000 arrived", found)
	}
}

// without is a dump without its n-th frame.
func without(t *testing.T, dump []byte, n int) []byte {
	t.Helper()
	at := 12
	for range n {
		at += 24 + int(binary.LittleEndian.Uint32(dump[at+16:]))
	}
	end := at + 24 + int(binary.LittleEndian.Uint32(dump[at+16:]))
	return append(bytes.Clone(dump[:at]), dump[end:]...)
}

func TestLoadRefusesOtherPlan(t *testing.T) {
	t.Parallel()
	plan := bloom.Plan{Shards: 1, Filters: 1, Capacity: 1000, ErrorRate: 1e-3, Expansion: 2}
	s := newShelf(t, shardtest.One(t), plan)
	var file bytes.Buffer
	if err := s.filters.Dump(within(t), set(0, s.keys, plan), &file); err != nil {
		t.Fatal(err)
	}
	other := plan
	other.ErrorRate = 1e-4
	if err := s.filters.Load(within(t), set(0, s.keys, other), bytes.NewReader(file.Bytes()), true, nil); !errors.Is(err, bloom.ErrOther) {
		t.Errorf("other plan: %v", err)
	}
	if err := s.filters.Load(within(t), set(1, s.keys, plan), bytes.NewReader(file.Bytes()), true, nil); !errors.Is(err, bloom.ErrOther) {
		t.Errorf("other shard: %v", err)
	}
	if err := s.filters.Dump(within(t), set(0, shard.KeysOf("none", "0.0"), plan), &file); !errors.Is(err, bloom.ErrMissing) {
		t.Errorf("dump of nothing: %v", err)
	}
}

// Filters are reached through a move of their slot, a restart and with a password.
func TestFiltersThroughMoveAndRestart(t *testing.T) {
	t.Parallel()
	plan := bloom.Plan{Shards: 2, Filters: 2, Capacity: 1000, ErrorRate: 1e-3, Expansion: 2}
	server := shardtest.Start(t, shardtest.Config{Masters: 2, AOF: "always"})
	s := newShelf(t, server, plan)
	s.each("BF.MADD", 0, 1000)
	before := s.info(1)
	move := server.BeginMove(t, shard.Slot(shard.NewMap(2).Tag(0)), server.Nodes[1])
	move.Keys(t, s.keys.Filter(1))
	if got := s.info(1); got != before { // ASK
		t.Errorf("half moved: %+v, was %+v", got, before)
	}
	if p, err := s.filters.Probe(within(t), 0, 1500, s.keys.Filter(1)); err != nil || p.N != 1500 {
		t.Errorf("probe of a half moved filter: %+v, %v", p, err)
	}
	move.Finish(t)
	if got := s.info(1); got != before { // MOVED
		t.Errorf("moved: %+v, was %+v", got, before)
	}
	server.Nodes[1].Kill(t)
	server.Nodes[1].Restart(t)
	if got := s.info(1); got != before {
		t.Errorf("restarted: %+v, was %+v", got, before)
	}
}

func TestFiltersLogIn(t *testing.T) {
	t.Parallel()
	server := shardtest.Start(t, shardtest.Config{Password: "secret"})
	client, err := shard.Open(t.Context(), shard.Config{Addrs: []string{"redis://default:secret@" + server.Addrs[0] + "/2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	filters := bloom.New(client)
	defer filters.Close()
	plan := bloom.Plan{Shards: 1, Filters: 1, Capacity: 1000, ErrorRate: 1e-3, Expansion: 2}
	if err := filters.Reserve(within(t), 0, "f", plan); err != nil {
		t.Fatal(err)
	}
	if found, err := client.Do(within(t), 0, "f", "EXISTS", "f"); err != nil || found != int64(1) {
		t.Errorf("in database 2: %v, %v", found, err)
	}
}

// Filters of several keys go into a shard that has fewer, or more: what is known
// then is what the dump knows.
func TestDumpOfFurtherKeys(t *testing.T) {
	t.Parallel()
	plan := bloom.Plan{Shards: 1, Filters: 2, Capacity: 1000, ErrorRate: 1e-4, Expansion: 2}
	s := newShelf(t, shardtest.One(t), plan)
	one, two := set(0, s.keys, plan), set(0, s.keys, plan)
	two.Each = 2
	dump := func(from bloom.Set) []byte {
		t.Helper()
		var file bytes.Buffer
		if err := s.filters.Dump(within(t), from, &file); err != nil {
			t.Fatal(err)
		}
		return file.Bytes()
	}
	s.each("BF.MADD", 0, 1500)
	small := dump(one)
	for j := range plan.Filters {
		if err := s.filters.Reserve(within(t), 0, s.keys.FilterKey(j, 1), plan.Further(2, 1, 10_000)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.client.Do(within(t), 0, s.keys.FilterKey(j, 1), "BF.ADD", s.keys.FilterKey(j, 1), "further"); err != nil {
			t.Fatal(err)
		}
	}
	large := dump(two)
	further := func() (n int64) {
		for j := range plan.Filters {
			if there, err := s.client.Do(within(t), 0, s.keys.Filter(j), "EXISTS", s.keys.FilterKey(j, 1)); err != nil {
				t.Fatal(err)
			} else if there == int64(1) {
				n += s.key(j, 1).Items
			}
		}
		return n
	}
	var became []int
	load := func(into bloom.Set, file []byte) {
		t.Helper()
		if err := s.filters.Load(within(t), into, bytes.NewReader(file), true, func(each int) error {
			became = append(became, each)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	load(two, small)
	if n := further(); n != 0 {
		t.Errorf("%d URLs in keys that the dump does not have", n)
	}
	load(one, large)
	load(two, large)
	if n := further(); n != 2 || len(became) != 2 || became[0] != 1 || became[1] != 2 {
		t.Errorf("%d URLs in further keys, want 2; called with %v keys, want 1 and 2", n, became)
	}
	if found := s.each("BF.MEXISTS", 0, 1500); found != 1500 {
		t.Errorf("%d of 1500 arrived", found)
	}
}
