package frontier

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"seine/shard"
)

// validMarks joins what is wrong with the memory marks.
func (s *Settings) validMarks() error {
	var faults []error
	if s.MemoryHigh < 0 || s.MemoryHigh > 99 {
		faults = append(faults, fmt.Errorf("frontier: settings: memory-high is %d, must be 1 to 99 per cent, or 0 for no marks", s.MemoryHigh))
	}
	switch {
	case s.MemoryLow < 0:
		faults = append(faults, fmt.Errorf("frontier: settings: memory-low is %d, must not be negative", s.MemoryLow))
	case s.MemoryHigh > 0 && s.MemoryLow >= s.MemoryHigh:
		faults = append(faults, fmt.Errorf("frontier: settings: memory-low is %d, must be below memory-high, %d", s.MemoryLow, s.MemoryHigh))
	}
	return errors.Join(faults...)
}

// lowMark is MemoryLow or its default.
func (s *Settings) lowMark() int {
	if s.MemoryLow > 0 {
		return s.MemoryLow
	}
	return max(s.MemoryHigh-5, 0)
}

// appendMarks appends the marks of shard k as lua/marks.lua reads them, nothing
// when there are none.
func (f *Frontier) appendMarks(dst []byte, k int, s *Settings) []byte {
	if s.MemoryHigh == 0 {
		return dst
	}
	dst = append(dst, byte(s.lowMark()), byte(s.MemoryHigh))
	return binary.BigEndian.AppendUint32(dst, f.longest[k].Load())
}

// noteLongest keeps, for the shards of each master, the longest queue of any of
// them: they share its memory, so none may turn links away while another's
// queues are far longer. A shard that did not answer keeps what is known of it.
func (f *Frontier) noteLongest(stats []ShardStats) {
	longest := make(map[string]int64)
	for i := range stats {
		s := &stats[i]
		longest[s.Master] = max(longest[s.Master], s.Memory.Longest)
	}
	for k := range stats {
		if master := stats[k].Master; master != "" {
			f.longest[k].Store(uint32(min(longest[master], math.MaxUint32)))
		}
	}
}

// Unmarked says where the crawl's memory marks do nothing, nil when they hold
// everywhere or there are none. Cost: as Stats.
func (f *Frontier) Unmarked(ctx context.Context) (*shard.Warning, error) {
	if f.Settings().MemoryHigh == 0 {
		return nil, nil
	}
	stats, err := f.Stats(ctx)
	if err != nil {
		return nil, err
	}
	return unmarked(stats), nil
}

func unmarked(stats []ShardStats) *shard.Warning {
	w := &shard.Warning{
		What: "the crawl has memory marks, but this server has no maxmemory or does not say it (INFO): they do nothing here",
		Set:  "maxmemory",
	}
	for i := range stats {
		if s := &stats[i]; s.Memory.Limit == 0 && !slices.Contains(w.Servers, s.Master) {
			w.Servers = append(w.Servers, s.Master)
		}
	}
	if w.Servers == nil {
		return nil
	}
	slices.Sort(w.Servers)
	return w
}

// Pressure says that the shard is full, and what the marks of the settings do in
// it, "" for nothing.
func (s *ShardStats) Pressure(set *Settings) string {
	m := &s.Memory
	if m.Limit <= 0 || m.Used < m.Limit && !m.Pressed {
		return ""
	}
	percent := 100 * float64(m.Used) / float64(m.Limit)
	text := fmt.Sprintf("shard %d: memory of %s at %.1f%% of maxmemory", s.Shard, s.Master, percent)
	if m.Used >= m.Limit {
		text += ", full: new URLs wait, or go to --overflow; give it memory"
	}
	if !m.Pressed {
		return text
	}
	where := fmt.Sprintf("above the high mark of %d%%", set.MemoryHigh)
	if percent <= float64(set.MemoryHigh) {
		where = fmt.Sprintf("not yet below the low mark of %d%%", set.lowMark())
	}
	joint := ", "
	if m.Used >= m.Limit {
		joint = "; "
	}
	return text + joint + fmt.Sprintf("%s: links to queues of %d URLs or more are turned away", where, m.Bar)
}
