//go:build !amd64 || purego

package extract

// newTagMapper returns nil: nothing here is quicker than looking for one byte at a time.
func newTagMapper() tagMapper { return nil }
