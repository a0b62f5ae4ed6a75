package shard_test

import "strings"

func contains(s, part string) bool { return strings.Contains(s, part) }

func split(addr string) (host, port string) {
	host, port, _ = strings.Cut(addr, ":")
	return host, port
}
