//go:build !linux

package jsonl

// unreadBytes is the request for how much is left in a pipe: FIONREAD, as
// all BSDs number it.
const unreadBytes = 0x4004667f
