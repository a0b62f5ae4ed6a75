//go:build !purego

package extract

import "golang.org/x/sys/cpu"

// newMarker is the marker of this processor, nil where it has none.
func newMarker() marker {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasBMI1 {
		return nil
	}
	return func(dst []tags, b []byte, with *needles) (doubtful uint64) {
		if len(dst) > 0 && len(b) >= blockBytes*len(dst)+aheadBytes {
			doubtful = markAVX2(&dst[0], &b[0], len(dst), with) >> (64 - len(dst))
		}
		return doubtful
	}
}

// markAVX2 marks blocks, one at least and 64 at most, from src on. It reads 64 bytes
// of each, and aheadBytes behind the last. The highest bit of doubtful is for the
// last block.
//
//go:noescape
func markAVX2(dst *tags, src *byte, blocks int, with *needles) (doubtful uint64)
