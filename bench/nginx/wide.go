package nginx

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Wide runs nginx on a free port of all addresses at once, so that every address
// of 127.0.0.0/8 is a site of its own. All of them serve root: index.html for /,
// page.html for whatever is not there, and no robots.txt. A worker holds as many
// connections as the limit of open files lets it, and closes idle ones when it
// is out of them. Stop ends it.
func Wide(dir, root string, workers int) (*Server, error) {
	everywhere := []Site{{Host: "0.0.0.0", Root: root}}
	port, err := freePort(everywhere)
	if err != nil {
		return nil, err
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return nil, fmt.Errorf("nginx: limit of open files: %w", err)
	}
	s := &Server{Port: port, sites: everywhere, dir: dir}
	if err := s.start(s.wide(root, workers, min(files.Max, 1<<20))); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) wide(root string, workers int, files uint64) string {
	return fmt.Sprintf(`%sworker_processes %d;
worker_rlimit_nofile %d;
events { worker_connections %d; multi_accept on; }
http {
  default_type text/html;
  log_format seen '$server_addr $msec $pid $connection_requests $request_uri';
  access_log access.log seen buffer=256k flush=1s;
  log_not_found off;
  %s
  sendfile on;
  open_file_cache max=16;
  keepalive_requests 1000000;
  server {
    listen %d backlog=4096;
    root %s;
    location / { try_files $uri $uri/index.html /page.html; }
    location = /robots.txt { return 404; }
  }
}
`, foreground(), workers, files, files-files/16, tempPaths, s.Port, root)
}

// Seen is one request as a wide server logged it.
type Seen struct {
	Site   netip.Addr
	At     time.Time // what nginx took for now when it had answered, in milliseconds
	Worker int       // process id
	First  bool      // of its connection, which had to be accepted before
	Path   string
}

// EachSeen hands the access log of a wide server to f, line by line; nginx may
// hold back the last second of it until Stop.
func (s *Server) EachSeen(f func(Seen) error) error {
	log, err := os.Open(filepath.Join(s.dir, "access.log"))
	if err != nil {
		return fmt.Errorf("nginx: %w", err)
	}
	defer log.Close()
	lines := bufio.NewReaderSize(log, 1<<20)
	for {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("nginx: access log: %w", err)
		}
		seen, err := parseSeen(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return err
		}
		if err := f(seen); err != nil {
			return err
		}
	}
}

func parseSeen(line string) (Seen, error) {
	part := strings.SplitN(line, " ", 5)
	if len(part) != 5 {
		return Seen{}, fmt.Errorf("nginx: access log holds %q", line)
	}
	site, err1 := netip.ParseAddr(part[0])
	sec, ms, _ := strings.Cut(part[1], ".")
	at, err2 := strconv.ParseInt(sec+ms, 10, 64)
	worker, err3 := strconv.Atoi(part[2])
	if err1 != nil || err2 != nil || err3 != nil || len(ms) != 3 {
		return Seen{}, fmt.Errorf("nginx: access log holds %q", line)
	}
	return Seen{site, time.UnixMilli(at), worker, part[3] == "1", part[4]}, nil
}
