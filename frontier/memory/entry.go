package memory

import "seine/frontier"

// entryLost is how often a stored entry was lost.
func entryLost[T string | []byte](rec T) uint8 { return rec[2] - '0' }

// decodeEntry reads an entry of a queue, which wrote it itself.
func decodeEntry[T string | []byte](rec T, site string) frontier.Entry {
	e, err := frontier.DecodeEntry(string(rec), site)
	if err != nil {
		panic("memory: a queue was overwritten: " + err.Error())
	}
	return e
}
