package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"seine/shard"
)

// TestDoctorOfThisMachine: what doctor reports of open files, ports and memory is what the
// process has, and too few are reported, with what to do.
func TestDoctorOfThisMachine(t *testing.T) {
	t.Parallel()
	tool := program(t)
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	has, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		t.Fatal(err)
	}
	var from, to int
	fmt.Sscan(string(has), &from, &to)

	const own = `exec "$0" "$@"`
	for _, c := range []struct {
		name, shell, what string
		level             shard.Level // "" = either
		found             string
	}{
		{"files", own, "open files", "", fmt.Sprintf("%d, of which all but an eighth may be connections", files.Max)},
		{"some files", "ulimit -n 4096; " + own, "open files", shard.Warn, "4096, of which all but an eighth may be connections"},
		{"few files", "ulimit -n 256; " + own, "open files", shard.Fail, "256, of which all but an eighth may be connections"},
		{"ports", own, "ports", "", fmt.Sprintf("%d to %d for outgoing connections, %d to one address", from, to, to-from+1)},
		{"few ports", "echo 30000 39999 >/proc/sys/net/ipv4/ip_local_port_range && " + own, "ports", shard.Warn, "30000 to 39999 for outgoing connections, 10000 to one address"},
		{"memory", "GOMAXPROCS=3 GOMEMLIMIT=2GiB " + own, "memory", shard.OK, "2.00 GiB, 3 processors"},
		{"little memory", "GOMAXPROCS=1 GOMEMLIMIT=128MiB " + own, "memory", shard.Warn, "0.12 GiB, 1 processor"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			args := []string{"sh", "-c", c.shell, tool, "doctor", "--redis", "127.0.0.1:1", "--json"}
			if c.name == "few ports" { // in a network of their own
				args = append([]string{"unshare", "--net", "--map-root-user"}, args...)
				if err := exec.Command(args[0], args[1], args[2], "true").Run(); err != nil {
					t.Skip("no network namespace can be had here: ", err)
				}
			}
			out, _ := exec.Command(args[0], args[1:]...).Output() // 1, for there is no Redis
			var list []shard.Finding
			if err := json.Unmarshal(out, &list); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for _, f := range list {
				if f.What != c.what {
					continue
				}
				if f.Found != c.found || c.level != "" && f.Level != c.level || (f.Do == "") != (f.Level == shard.OK) {
					t.Errorf("%+v, want %s: %s", f, c.level, c.found)
				}
				return
			}
			t.Errorf("no line on %s: %s", c.what, out)
		})
	}
}
