package jsonl

import "golang.org/x/sys/unix"

// unreadBytes is the request for how much is left in a pipe.
const unreadBytes = unix.TIOCINQ
