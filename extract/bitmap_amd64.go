//go:build !purego

package extract

import "golang.org/x/sys/cpu"

// newTagMapper returns the tagMapper of this processor, nil where it has none.
func newTagMapper() tagMapper {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasBMI1 {
		return nil
	}
	return func(dst []tagBits, b []byte, with *patterns) (doubtful uint64) {
		if len(dst) > 0 && len(b) >= blockBytes*len(dst)+aheadBytes {
			doubtful = mapTagsAVX2(&dst[0], &b[0], len(dst), with) >> (64 - len(dst))
		}
		return doubtful
	}
}

// mapTagsAVX2 maps 1 to 64 blocks from src on. It reads 64 bytes of each, and aheadBytes
// behind the last. The highest bit of doubtful is for the last block.
//
//go:noescape
func mapTagsAVX2(dst *tagBits, src *byte, blocks int, with *patterns) (doubtful uint64)
