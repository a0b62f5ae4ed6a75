package shard

import "strconv"

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
