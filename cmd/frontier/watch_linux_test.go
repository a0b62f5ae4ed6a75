package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestWatch: stats shows again until a signal, which is no error, or until it cannot;
// a terminal is cleared, and nothing else is.
func TestWatch(t *testing.T) {
	t.Parallel()
	tool := program(t)
	dir := filepath.Join(t.TempDir(), "state")
	d := &operator{t: t, addr: "127.0.0.1:1"}
	d.ok("seed --state " + dir + " --seed http://a.example/")
	d.refused(2, "stats --watch --state "+dir, "no fetcher has "+dir+" open")
	f := open(t, dir)
	if err := f.Serve(); err != nil {
		t.Fatal(err)
	}
	// watch starts the program, whose answers go to out and are read from in, and
	// returns what it wrote until its third answer began.
	watch := func(in, out *os.File) (*exec.Cmd, string) {
		t.Helper()
		cmd := exec.Command(tool, "stats", "--watch", "--every", "100ms", "--state", dir)
		cmd.Stdout = out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		out.Close()
		stuck := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
		defer stuck.Stop()
		var text strings.Builder
		for lines := bufio.NewScanner(in); strings.Count(text.String(), "known URLs") < 3 && lines.Scan(); {
			text.WriteString(lines.Text() + "\n")
		}
		return cmd, text.String()
	}
	const clear = "\x1b[H\x1b[2J"
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	cmd, text := watch(in, out)
	if strings.Count(text, "\n\ncrawl ") != 2 || strings.Contains(text, "\x1b") {
		t.Errorf("to a pipe: %q", text)
	}
	cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil {
		t.Error("interrupted: ", err)
	}

	screen, tty := terminal(t)
	cmd, text = watch(screen, tty)
	if strings.Count(text, clear+"crawl ") != 2 {
		t.Errorf("to a terminal: %q", text)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Error("the crawl went away: ", err)
	}
}

// terminal opens a terminal, and the screen that shows what is written to it.
func terminal(t *testing.T) (screen, tty *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetUint32(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return screen, tty
}
