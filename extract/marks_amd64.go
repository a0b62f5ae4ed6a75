//go:build !purego

package extract

import "golang.org/x/sys/cpu"

// markFast marks as many blocks of b as dst has; b is markedBytes longer. It is
// nil where the processor has nothing quick for it.
var markFast = quickest()

func quickest() func(dst []marks, b []byte, with *needles) {
	if !cpu.X86.HasAVX2 {
		return nil
	}
	return func(dst []marks, b []byte, with *needles) {
		if len(dst) > 0 && len(b) >= blockBytes*len(dst)+aheadBytes {
			markAVX2(&dst[0], &b[0], len(dst), with)
		}
	}
}

// markAVX2 marks blocks, one at least, from src on. It reads 64 bytes of each,
// and aheadBytes behind the last.
//
//go:noescape
func markAVX2(dst *marks, src *byte, blocks int, with *needles)
