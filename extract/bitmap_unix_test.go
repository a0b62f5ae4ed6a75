//go:build unix

package extract

import (
	"testing"

	"golang.org/x/sys/unix"
)

// mapTags reads nothing behind the bytes that it is given.
func TestBitmapStaysInside(t *testing.T) {
	page := unix.Getpagesize()
	mem, err := unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	if err := unix.Mprotect(mem[page:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	n := newNames(&Config{Kinds: Navigation})
	s := NewScanner(Config{})
	needBitmap(t)
	for blocks := range maxBlocks + 1 {
		mapTags(make([]tagBits, blocks), mem[page-blocks*blockBytes-aheadBytes:page], &n.patterns)
	}
	s.Reset(benchDoc, func(*Link) {})
	for size := range page {
		copy(mem[page-size:page], "<p>")
		s.Write(mem[page-size : page])
	}
}
