package jsonl

import "golang.org/x/sys/unix"

// unreadBytes is the request that tells how much is left in a pipe.
const unreadBytes = unix.TIOCINQ
