package shard

import (
	"errors"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Array is an array of a reply of Run or Do, nil when v is none.
func Array(v any) []any { l, _ := v.([]any); return l }

// Text is a bulk string of a reply, "" when v is none.
func Text(v any) string { s, _ := v.(string); return s }

// Int is an integer of a reply, sent as such or as text; else 0.
func Int(v any) int64 {
	switch x := v.(type) {
	case int64:
		return x
	case string:
		n, _ := strconv.ParseInt(x, 10, 64)
		return n
	}
	return 0
}

// Code is the first word of the error reply that err is of, by which scripts tell what
// they refuse, and rest what follows it; "" where err is of no reply.
func Code(err error) (code, rest string) {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return "", ""
	}
	code, rest, _ = strings.Cut(strings.TrimPrefix(reply.Error(), "ERR "), " ")
	return code, rest
}
