package postgres

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	password = "secret of the test"
	escaped  = "secret%20of%20the%20test"
)

// server is a PostgreSQL of a test, started as a user it accepts.
type server struct {
	bin, dir, port string
	as             *syscall.SysProcAttr
	cmd            *exec.Cmd
	log            bytes.Buffer
}

// start makes and starts a server; it ends with the test.
func start(t testing.TB) *server {
	t.Helper()
	bins, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(bins) == 0 {
		if path, err := exec.LookPath("initdb"); err == nil {
			bins = []string{filepath.Dir(path)}
		}
	}
	if len(bins) == 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("no PostgreSQL here, see scripts/setup")
		}
		t.Skip("SKIPPED, needs PostgreSQL, see scripts/setup")
	}
	s := &server{bin: bins[len(bins)-1], as: &syscall.SysProcAttr{Setpgid: true}}
	base, err := os.MkdirTemp("", "seine-postgres")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	s.dir = filepath.Join(base, "data")
	if os.Getuid() == 0 { // it refuses root
		u, err := user.Lookup("postgres")
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		s.as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(base, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(base, "password")
	if err := os.WriteFile(secret, []byte(password), 0o644); err != nil {
		t.Fatal(err)
	}
	init := exec.Command(filepath.Join(s.bin, "initdb"), "-D", s.dir, "-U", "seine", "-A", "scram-sha-256", "--pwfile", secret, "-E", "UTF8", "--locale", "C.UTF-8", "-N", "--wal-segsize", "1")
	init.SysProcAttr, init.Dir = s.as, base
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, s.port, _ = net.SplitHostPort(ln.Addr().String())
	ln.Close()
	s.run(t)
	t.Cleanup(func() {
		s.kill(t)
		if t.Failed() {
			t.Logf("PostgreSQL:\n%s", s.log.Bytes()[max(0, s.log.Len()-3000):])
		}
	})
	return s
}

// run starts the server on its data.
func (s *server) run(t testing.TB) {
	t.Helper()
	s.cmd = exec.Command(filepath.Join(s.bin, "postgres"), "-D", s.dir, "-p", s.port, "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories="+filepath.Dir(s.dir), "-c", "shared_buffers=16MB", "-c", "min_wal_size=2MB", "-c", "max_wal_size=256MB")
	s.cmd.SysProcAttr, s.cmd.Dir = s.as, filepath.Dir(s.dir)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if conn, err := pgx.Connect(context.Background(), s.address()+"&connect_timeout=5"); err == nil {
			conn.Close(context.Background())
			return
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// kill ends the server and all its processes as a crash does.
func (s *server) kill(testing.TB) {
	if s.cmd != nil {
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		_ = s.cmd.Wait()
		s.cmd = nil
		_ = os.Remove(filepath.Join(s.dir, "postmaster.pid"))
	}
}

// signal sends a signal to the server and all its processes.
func (s *server) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(-s.cmd.Process.Pid, sig); err != nil {
		t.Fatal(err)
	}
}

// limitFiles bounds the size of files that the server's processes write, those
// that are there and those to come.
func (s *server) limitFiles(t testing.TB, soft string) {
	t.Helper()
	pids := []int{s.cmd.Process.Pid}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pids[0], pids[0]))
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	for _, f := range bytes.Fields(children) {
		pid, _ := strconv.Atoi(string(f))
		pids = append(pids, pid)
	}
	for _, pid := range pids {
		cmd := exec.Command("prlimit", "--pid", strconv.Itoa(pid), "--fsize="+soft+":") // as the server's user
		cmd.SysProcAttr, cmd.Dir = &syscall.SysProcAttr{Credential: s.as.Credential}, "/"
		if out, err := cmd.CombinedOutput(); err != nil && syscall.Kill(pid, 0) == nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

// address is how to connect, as the user that owns all.
func (s *server) address() string {
	return "postgres://seine:" + escaped + "@127.0.0.1:" + s.port + "/postgres?sslmode=disable"
}

// query returns the only column of rows.
func query[T any](t testing.TB, s *server, sql string, args ...any) []T {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func exec1(t testing.TB, s *server, sql string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
}
