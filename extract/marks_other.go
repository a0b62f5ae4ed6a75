//go:build !amd64 || purego

package extract

// markers has none: nothing here is quicker than looking for one byte at a time.
func markers() []marker { return nil }
