package load

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
)

// Redis runs a command of redis-cli at a server's address and returns what it prints.
// An error that the server answers is one too.
func Redis(addr string, command ...string) ([]byte, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	out, err := exec.Command("redis-cli", append([]string{"-e", "-h", host, "-p", port}, command...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("redis-cli %s at %s: %w", strings.Join(command, " "), addr, err)
	}
	return out, nil
}

// Masters are Redis servers on this machine.
type Masters []Master

// Master is one of them.
type Master struct {
	Addr string
	Pid  int
}

// FindMasters asks the servers at some addresses, with commas between, who they are.
func FindMasters(addrs string) (Masters, error) {
	var all Masters
	for addr := range strings.SplitSeq(addrs, ",") {
		m := Master{Addr: addr}
		id, err := m.info("server", "process_id")
		if err != nil {
			return nil, err
		}
		m.Pid = int(id)
		if _, err := Used(m.Pid); err != nil {
			return nil, fmt.Errorf("the server at %s is not on this machine: %w", addr, err)
		}
		all = append(all, m)
	}
	return all, nil
}

// Used is the processor time of all.
func (all Masters) Used() (t Times, err error) {
	for _, m := range all {
		used, e := Used(m.Pid)
		t, err = t.Plus(used), errors.Join(err, e)
	}
	return t, err
}

// Memory is what all hold in bytes. One that does not answer counts nothing.
func (all Masters) Memory() (bytes float64) {
	for _, m := range all {
		n, _ := m.info("memory", "used_memory")
		bytes += n
	}
	return bytes
}

// Forget drops what servers keep of crawls that are deleted: their scripts and, a
// megabyte, how long each command took.
func (all Masters) Forget() error {
	nothing := func([]byte) error { return nil }
	return errors.Join(all.Each(nothing, "script", "flush"), all.Each(nothing, "config", "resetstat"))
}

// Each runs a command on each server and hands on what it answers.
func (all Masters) Each(hand func(reply []byte) error, command ...string) error {
	for _, m := range all {
		reply, err := Redis(m.Addr, command...)
		if err == nil {
			err = hand(reply)
		}
		if err != nil {
			return fmt.Errorf("redis-cli %s at %s: %w", strings.Join(command, " "), m.Addr, err)
		}
	}
	return nil
}

// info reads one number of INFO.
func (m Master) info(section, name string) (float64, error) {
	out, err := Redis(m.Addr, "info", section)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(out)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return strconv.ParseFloat(rest, 64)
		}
	}
	return 0, fmt.Errorf("redis-cli at %s: no %s in %q", m.Addr, name, out)
}
