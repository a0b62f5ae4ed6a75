// Package nginx serves directories by a real nginx on loopback addresses and
// reads its access log back, so that tests and benchmarks know what a crawler
// asked for.
package nginx

import (
	"bufio"
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

// Site is one directory served at one loopback address. Different addresses
// are different sites to a crawler.
type Site struct {
	Host string // such as 127.0.0.2
	Root string
}

// Server is a running nginx.
type Server struct {
	Port  int
	sites []Site
	dir   string
	cmd   *exec.Cmd
}

// Documentation packages of Debian that make good sites: what a crawl from
// /index.html finds in them is known.
const (
	PostgresDoc = "/usr/share/doc/postgresql-doc-15/html" // 1,169 pages
	PythonDoc   = "/usr/share/doc/python3.11/html"        // 526 pages, a text file and a dead link
)

// Start runs nginx on a free port of every site's address, with its files
// under dir. Stop ends it.
func Start(dir string, sites []Site) (*Server, error) {
	for _, s := range sites {
		if _, err := os.Stat(filepath.Join(s.Root, "index.html")); err != nil {
			return nil, fmt.Errorf("nginx: nothing to serve: %w (scripts/setup installs it)", err)
		}
	}
	port, err := freePort(sites)
	if err != nil {
		return nil, err
	}
	s := &Server{Port: port, sites: sites, dir: dir}
	if err := s.start(s.config()); err != nil {
		return nil, err
	}
	return s, nil
}

// start runs nginx with a configuration and waits until it listens.
func (s *Server) start(config string) error {
	bin, err := exec.LookPath("nginx")
	if err != nil {
		if bin, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			return fmt.Errorf("nginx: not installed (scripts/setup installs it)")
		}
	}
	conf := filepath.Join(s.dir, "nginx.conf")
	if err := os.WriteFile(conf, []byte(config), 0o600); err != nil {
		return fmt.Errorf("nginx: %w", err)
	}
	s.cmd = exec.Command(bin, "-p", s.dir, "-c", conf, "-e", filepath.Join(s.dir, "error.log"))
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("nginx: %w", err)
	}
	if err := s.await(); err != nil {
		s.Stop()
		return err
	}
	return nil
}

// foreground begins every configuration.
func foreground() string {
	if os.Getuid() == 0 {
		return "user root;\ndaemon off;\npid nginx.pid;\n"
	}
	return "daemon off;\npid nginx.pid;\n"
}

const tempPaths = "client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp; uwsgi_temp_path tmp; scgi_temp_path tmp;"

// config is one worker in the foreground, with a log line a request: address,
// status and target.
func (s *Server) config() string {
	var b strings.Builder
	fmt.Fprintf(&b, `%sworker_processes 1;
events { worker_connections 4096; }
http {
  include /etc/nginx/mime.types;
  log_format asked '$server_addr $status $msec $request_uri';
  access_log access.log asked;
  %s
  sendfile on;
  keepalive_requests 1000000;
`, foreground(), tempPaths)
	for _, site := range s.sites {
		fmt.Fprintf(&b, "  server { listen %s:%d; root %s; }\n", site.Host, s.Port, site.Root)
	}
	b.WriteString("}\n")
	return b.String()
}

// freePort finds a port that is free on every address.
func freePort(sites []Site) (int, error) {
tries:
	for range 100 {
		l, err := net.Listen("tcp", net.JoinHostPort(sites[0].Host, "0"))
		if err != nil {
			return 0, fmt.Errorf("nginx: %w", err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		for _, s := range sites {
			l, err := net.Listen("tcp", net.JoinHostPort(s.Host, strconv.Itoa(port)))
			if err != nil {
				continue tries
			}
			l.Close()
		}
		return port, nil
	}
	return 0, fmt.Errorf("nginx: no port is free on all of %d addresses", len(sites))
}

// await waits until nginx accepts connections.
func (s *Server) await() error {
	addr := net.JoinHostPort(s.sites[0].Host, strconv.Itoa(s.Port))
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if c, err := net.Dial("tcp", addr); err == nil {
			return c.Close()
		}
		time.Sleep(10 * time.Millisecond) // it has no way to say that it listens
	}
	text, _ := os.ReadFile(filepath.Join(s.dir, "error.log"))
	return fmt.Errorf("nginx: does not listen at %s: %s", addr, text)
}

// Stop ends nginx and waits for it.
func (s *Server) Stop() {
	s.cmd.Process.Signal(syscall.SIGTERM)
	s.cmd.Wait()
}

// URL is the address of a site's path.
func (s *Server) URL(site int, path string) string {
	return fmt.Sprintf("http://%s:%d%s", s.sites[site].Host, s.Port, path)
}

// Pid is nginx's process, the parent of its worker.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// Asked is one request as nginx logged it.
type Asked struct {
	Host   string
	Status int
	Path   string
}

// Requests reads the access log: how often each was asked for. robots.txt is
// left out.
func (s *Server) Requests() (map[Asked]int, error) {
	f, err := os.Open(filepath.Join(s.dir, "access.log"))
	if err != nil {
		return nil, fmt.Errorf("nginx: %w", err)
	}
	defer f.Close()
	asked := make(map[Asked]int)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		part := strings.SplitN(lines.Text(), " ", 4)
		if len(part) != 4 {
			return nil, fmt.Errorf("nginx: access log holds %q", lines.Text())
		}
		status, err := strconv.Atoi(part[1])
		if err != nil {
			return nil, fmt.Errorf("nginx: access log holds %q", lines.Text())
		}
		if part[3] != "/robots.txt" {
			asked[Asked{part[0], status, part[3]}]++
		}
	}
	return asked, lines.Err()
}
