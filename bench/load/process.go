package load

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Times is what a process has used of the processors.
type Times struct{ User, Kernel time.Duration }

// Plus adds.
func (t Times) Plus(o Times) Times { return Times{t.User + o.User, t.Kernel + o.Kernel} }

// Minus subtracts.
func (t Times) Minus(o Times) Times { return Times{t.User - o.User, t.Kernel - o.Kernel} }

// All is the sum of both.
func (t Times) All() time.Duration { return t.User + t.Kernel }

// Tick is the unit of the times in /proc: USER_HZ is 100 on all that Linux runs on.
const Tick = 10 * time.Millisecond

// Own reads the times of a process, with those of its children that have ended.
func Own(pid int) (Times, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Times{}, fmt.Errorf("processor time: %w", err)
	}
	field := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // the name before it may have spaces
	var n [4]int64
	for i := range n {
		if n[i], err = strconv.ParseInt(field[11+i], 10, 64); err != nil {
			return Times{}, fmt.Errorf("processor time of process %d: %w", pid, err)
		}
	}
	return Times{time.Duration(n[0]+n[2]) * Tick, time.Duration(n[1]+n[3]) * Tick}, nil
}

// Used reads the times of a process and of all its children.
func Used(pid int) (Times, error) {
	t, err := Own(pid)
	if err != nil {
		return t, err
	}
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for child := range strings.FieldsSeq(string(children)) {
		id, _ := strconv.Atoi(child)
		if c, err := Used(id); err == nil { // it may just have ended
			t = t.Plus(c)
		}
	}
	return t, nil
}

// Memory reads a number of a process's status, such as VmRSS and VmHWM, in bytes. It is
// 0 where there is none.
func Memory(pid int, name string) float64 {
	return kilobytes(fmt.Sprintf("/proc/%d/status", pid), name)
}

// Available is the memory that the machine can give without swapping, in bytes.
func Available() float64 { return kilobytes("/proc/meminfo", "MemAvailable") }

// kilobytes reads a line such as "VmRSS: 12 kB", in bytes.
func kilobytes(file, name string) float64 {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb * 1024
		}
	}
	return 0
}

// Files counts what a process has open, and how much of it is sockets.
func Files(pid int) (all, sockets int) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if to, _ := os.Readlink(filepath.Join(dir, e.Name())); strings.HasPrefix(to, "socket:") {
			sockets++
		}
	}
	return len(entries), sockets
}

// Busy is how many processes wanted a processor in the last minute, as the machine
// prints it.
func Busy() string {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

// FreePort finds a TCP port of 127.0.0.1 that nobody listens on.
func FreePort() (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil
}

// Program is one that runs, or ran.
type Program struct {
	cmd      *exec.Cmd
	out, log bytes.Buffer
	begun    time.Time
	ended    chan struct{}
	err      error
	cut      bool
}

// Run starts a program. It may open so many files; 0 leaves that as it is.
func Run(files int, name string, args ...string) (*Program, error) {
	if files > 0 {
		args = append([]string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, files), name}, args...)
		name = "sh"
	}
	p := &Program{cmd: exec.Command(name, args...), begun: time.Now(), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.log
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// Pid is its process.
func (p *Program) Pid() int { return p.cmd.Process.Pid }

// Err is why the program failed. It is nil while it runs.
func (p *Program) Err() error {
	select {
	case <-p.ended:
		if p.err != nil && !p.cut {
			return fmt.Errorf("%s: %w: %s", filepath.Base(p.cmd.Path), p.err, p.log.Bytes())
		}
	default:
	}
	return nil
}

// Stop ends the program in order, or at once after some seconds.
func (p *Program) Stop() {
	p.cut = true
	p.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it has ended
	select {
	case <-p.ended:
	case <-time.After(5 * time.Second):
		p.cmd.Process.Kill() //nolint:errcheck // it has ended
		<-p.ended
	}
}

// Outcome is what a program that ended has printed and used.
type Outcome struct {
	Out, Log string
	Wall     time.Duration
	Used     Times
	Peak     float64 // most memory, bytes
}

// Wait waits until the program has ended, and ends it at once when its time is over.
func (p *Program) Wait(most time.Duration) (*Outcome, error) {
	select {
	case <-p.ended:
	case <-time.After(most - time.Since(p.begun)):
		p.cut = true
		p.cmd.Process.Kill() //nolint:errcheck // it has ended
		<-p.ended
	}
	wall, state := time.Since(p.begun), p.cmd.ProcessState
	peak := float64(state.SysUsage().(*syscall.Rusage).Maxrss) * 1024
	return &Outcome{p.out.String(), p.log.String(), wall, Times{state.UserTime(), state.SystemTime()}, peak}, p.Err()
}
