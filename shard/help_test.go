package shard_test

import (
	"strings"
	"testing"

	"seine/shard/shardtest"
)

func TestMain(m *testing.M) { shardtest.Main(m) }

func contains(s, part string) bool { return strings.Contains(s, part) }

func split(addr string) (host, port string) {
	host, port, _ = strings.Cut(addr, ":")
	return host, port
}
