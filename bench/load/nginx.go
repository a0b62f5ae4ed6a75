package load

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net"
	"net/netip"
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
	way   Way
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
func Start(dir string, sites []Site, way Way) (*Server, error) {
	for _, s := range sites {
		if _, err := os.Stat(filepath.Join(s.Root, "index.html")); err != nil {
			return nil, fmt.Errorf("nginx: nothing to serve: %w (scripts/setup installs it)", err)
		}
	}
	var err error
	packed := make(map[string]string)
	sites = append([]Site(nil), sites...)
	for i := range sites {
		root := &sites[i].Root
		if packed[*root] == "" {
			if packed[*root], err = way.pack(*root, filepath.Join(dir, fmt.Sprint("packed-", len(packed)))); err != nil {
				return nil, err
			}
		}
		*root = packed[*root]
	}
	return start(dir, sites, way, func(s *Server) string {
		var b strings.Builder
		fmt.Fprintf(&b, "worker_processes 1;\nevents { worker_connections 16384; }\nworker_rlimit_nofile 32768;\nhttp {\n  include /etc/nginx/mime.types;\n%s  access_log access.log asked;\n", s.common())
		for _, site := range s.sites {
			fmt.Fprintf(&b, "  server { listen %s:%d%s; root %s; }\n", site.Host, s.Port, s.way.secure(site.Host), site.Root)
		}
		b.WriteString("}\n")
		return b.String()
	})
}

// Wide runs nginx on a free port of all addresses at once, so that every address
// of 127.0.0.0/8 is a site of its own. All of them serve root: index.html for /,
// page.html for whatever is not there, and no robots.txt. A worker holds as many
// connections as the limit of open files lets it, and closes idle ones when it
// is out of them. Its log is up to a second late. Stop ends it.
func Wide(dir, root string, workers int, way Way) (*Server, error) {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return nil, fmt.Errorf("nginx: limit of open files: %w", err)
	}
	most := min(files.Max, 1<<20)
	root, err := way.pack(root, filepath.Join(dir, "packed"))
	if err != nil {
		return nil, err
	}
	return start(dir, []Site{{Host: everywhere, Root: root}}, way, func(s *Server) string {
		return fmt.Sprintf(`worker_processes %d;
worker_rlimit_nofile %d;
events { worker_connections %d; multi_accept on; }
http {
  default_type text/html;
%s  access_log access.log asked buffer=256k flush=1s;
  log_not_found off;
  open_file_cache max=16;
  server {
    listen %d backlog=4096%s;
    root %s;
    location / { try_files $uri $uri/index.html /page.html; }
    location = /robots.txt { return 404; }
  }
}
`, workers, most, most-most/16, s.common(), s.Port, way.secure("$server_addr"), root)
	})
}

// common is what both kinds of servers have: a log line a request.
func (s *Server) common() string {
	return `  log_format asked '$server_addr $status $msec $pid $connection_requests $request_uri';
  client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp; uwsgi_temp_path tmp; scgi_temp_path tmp;
  sendfile on;
` + s.way.config()
}

// start runs nginx with a configuration and waits until it listens.
func start(dir string, sites []Site, way Way, config func(*Server) string) (*Server, error) {
	port, err := freePort(sites)
	if err != nil {
		return nil, err
	}
	s := &Server{Port: port, way: way, sites: sites, dir: dir}
	bin, err := exec.LookPath("nginx")
	if err != nil {
		if bin, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			return nil, fmt.Errorf("nginx: not installed (scripts/setup installs it)")
		}
	}
	text := "daemon off;\npid nginx.pid;\n" + config(s)
	if os.Getuid() == 0 {
		text = "user root;\n" + text
	}
	conf := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("nginx: %w", err)
	}
	s.cmd = exec.Command(bin, "-p", dir, "-c", conf, "-e", filepath.Join(dir, "error.log"))
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("nginx: %w", err)
	}
	if err := s.await(); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
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
	s.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it has ended
	s.cmd.Wait()                          //nolint:errcheck // it was asked to
}

// Address is that of a site of a wide server: 127.1.0.0 and what follows, which
// nothing else on a machine is likely to listen on.
func Address(site int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, byte(1 + site>>16), byte(site >> 8), byte(site)})
}

// everywhere is the address that a wide server listens at.
const everywhere = "0.0.0.0"

// URL is the address of a site's path.
func (s *Server) URL(site int, path string) string {
	host := s.sites[0].Host
	if host == everywhere {
		host = Address(site).String()
	} else {
		host = s.sites[site].Host
	}
	return fmt.Sprintf("%s://%s:%d%s", s.Scheme(), host, s.Port, path)
}

// Scheme is http or https.
func (s *Server) Scheme() string {
	if s.way.Chain != nil {
		return "https"
	}
	return "http"
}

// Pid is nginx's process, the parent of its workers.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// Log is the file with a line a request.
func (s *Server) Log() string { return filepath.Join(s.dir, "access.log") }

// Request is one as nginx logged it.
type Request struct {
	Site   netip.Addr
	Status int
	At     time.Time // what nginx took for now when it had answered, in milliseconds
	Worker int       // process id
	First  bool      // of its connection, which had to be accepted before
	Path   string
}

// EachRequest hands the access log to f, line by line.
func (s *Server) EachRequest(f func(Request) error) error {
	log, err := os.Open(s.Log())
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
		r, err := parseRequest(strings.TrimSuffix(line, "\n"))
		if err == nil {
			err = f(r)
		}
		if err != nil {
			return err
		}
	}
}

func parseRequest(line string) (Request, error) {
	part := strings.SplitN(line, " ", 6)
	if len(part) != 6 {
		return Request{}, fmt.Errorf("nginx: access log holds %q", line)
	}
	site, err1 := netip.ParseAddr(part[0])
	status, err2 := strconv.Atoi(part[1])
	sec, ms, _ := strings.Cut(part[2], ".")
	at, err3 := strconv.ParseInt(sec+ms, 10, 64)
	worker, err4 := strconv.Atoi(part[3])
	if err := cmp.Or(err1, err2, err3, err4); err != nil || len(ms) != 3 {
		return Request{}, fmt.Errorf("nginx: access log holds %q", line)
	}
	return Request{site, status, time.UnixMilli(at), worker, part[4] == "1", part[5]}, nil
}

// Asked is what was asked for.
type Asked struct {
	Host   string
	Status int
	Path   string
}

// Requests counts how often each was asked for. robots.txt is left out.
func (s *Server) Requests() (map[Asked]int, error) {
	asked := make(map[Asked]int)
	return asked, s.EachRequest(func(r Request) error {
		if r.Path != "/robots.txt" {
			asked[Asked{r.Site.String(), r.Status, r.Path}]++
		}
		return nil
	})
}
