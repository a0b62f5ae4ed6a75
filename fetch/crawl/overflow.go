package crawl

// Overflow keeps candidates that the frontier had no room for, so that their
// pages can be settled: lines in the form of elements of a feed, which seeding
// takes back.
type Overflow interface {
	// Write takes some whole lines, which it copies, and calls done once: with nil
	// when they are safe on disk, with an error when they never will be. It must
	// not block for the disk; what waits is bounded by the crawler's OpenBytes.
	// done does not block.
	Write(lines []byte, done func(error))
	// Err is why nothing can be written just now, or nil. Lines wait meanwhile,
	// and are tried again.
	Err() error
}
