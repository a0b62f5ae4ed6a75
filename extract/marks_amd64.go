//go:build !purego

package extract

import "golang.org/x/sys/cpu"

// markers are the ways to mark that this processor has, the quickest first. 512
// bits are not worth it where they slow the processor down, as before AVX512-VBMI2.
func markers() (all []marker) {
	if cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VBMI2 {
		all = append(all, markAll(markAVX512))
	}
	if cpu.X86.HasAVX2 {
		all = append(all, markAll(markAVX2))
	}
	return all
}

// markAll is a marker that calls mark for what is there.
func markAll(mark func(dst *marks, src *byte, blocks int, with *needles)) marker {
	return func(dst []marks, b []byte, with *needles) {
		if len(dst) > 0 && len(b) >= blockBytes*len(dst)+aheadBytes {
			mark(&dst[0], &b[0], len(dst), with)
		}
	}
}

// markAVX2 marks blocks, one at least, from src on. It reads 64 bytes of each,
// and aheadBytes behind the last.
//
//go:noescape
func markAVX2(dst *marks, src *byte, blocks int, with *needles)

// markAVX512 does what markAVX2 does.
//
//go:noescape
func markAVX512(dst *marks, src *byte, blocks int, with *needles)
