//go:build !unix

package fetch

func fileLimit() int { return unknownLimit }
