package frontier

import (
	"errors"
	"fmt"
)

// validateWatermarks joins what is wrong with the memory watermarks.
func (s *Settings) validateWatermarks() error {
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

// LowWatermark is MemoryLow or its default.
func (s *Settings) LowWatermark() int {
	if s.MemoryLow > 0 {
		return s.MemoryLow
	}
	return max(s.MemoryHigh-5, 0)
}

// Pressure says that the shard is full, and what the watermarks of the settings do in
// it, "" for nothing.
func (s *ShardStats) Pressure(set *Settings) string {
	m := &s.Memory
	if m.Limit <= 0 || m.Used < m.Limit && !m.OverWatermark {
		return ""
	}
	percent := 100 * float64(m.Used) / float64(m.Limit)
	text := fmt.Sprintf("shard %d: memory of %s at %.1f%% of maxmemory", s.Shard, s.Master, percent)
	if m.Used >= m.Limit {
		text += ", full: new URLs wait, or go to --overflow; give it memory"
	}
	if !m.OverWatermark {
		return text
	}
	where := fmt.Sprintf("above the high mark of %d%%", set.MemoryHigh)
	if percent <= float64(set.MemoryHigh) {
		where = fmt.Sprintf("not yet below the low mark of %d%%", set.LowWatermark())
	}
	joint := ", "
	if m.Used >= m.Limit {
		joint = "; "
	}
	return text + joint + fmt.Sprintf("%s: links to queues of %d URLs or more are turned away", where, m.Cutoff)
}
