//go:build !purego

package extract

import "golang.org/x/sys/cpu"

// markers are the ways to mark that this processor has, the quickest first. 512
// bits are not worth it where they slow the processor down, as before AVX512-VBMI2.
func markers() (all []marker) {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasBMI1 {
		return nil
	}
	if cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VBMI2 {
		all = append(all, markAll(markAVX512))
	}
	return append(all, markAll(markAVX2))
}

// markAll is a marker that calls mark for what is there.
func markAll(mark func(dst *tags, src *byte, blocks int, with *needles) (doubtful uint64)) marker {
	return func(dst []tags, b []byte, with *needles) (doubtful uint64) {
		if len(dst) > 0 && len(b) >= blockBytes*len(dst)+aheadBytes {
			doubtful = mark(&dst[0], &b[0], len(dst), with) >> (64 - len(dst))
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

// markAVX512 does what markAVX2 does.
//
//go:noescape
func markAVX512(dst *tags, src *byte, blocks int, with *needles) (doubtful uint64)
