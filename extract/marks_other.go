//go:build !amd64 || purego

package extract

// markFast is nil: nothing here is quicker than looking for one byte at a time.
var markFast func(dst []marks, b []byte, with *needles)
