//go:build purego || !(amd64 || arm64)

package inflate

import "encoding/binary"

// load64 is b[i:i+8], the first byte lowest.
func load64(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }

// store64 is the reverse.
func store64(b []byte, i int, v uint64) { binary.LittleEndian.PutUint64(b[i:], v) }

// store8 sets b[i].
func store8(b []byte, i int, v byte) { b[i] = v }
