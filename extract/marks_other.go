//go:build !amd64 || purego

package extract

// newMarker has none: nothing here is quicker than looking for one byte at a time.
func newMarker() marker { return nil }
