//go:build unix

package extract

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Marks read nothing behind the bytes that they are given.
func TestMarksStayInside(t *testing.T) {
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
	needMarker(t)
	for blocks := range maxBlocks + 1 {
		mark(make([]tags, blocks), mem[page-blocks*blockBytes-aheadBytes:page], &n.needles)
	}
	s.Reset(benchDoc, func(*Link) {})
	for size := range page {
		copy(mem[page-size:page], "<p>")
		s.Write(mem[page-size : page])
	}
}
