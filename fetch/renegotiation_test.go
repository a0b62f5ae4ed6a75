package fetch

import (
	"bufio"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// renegotiating serves two connections with OpenSSL, which asks for a renegotiation
// once it has the request, and then answers it.
func renegotiating(t *testing.T) (url string) {
	t.Helper()
	program, err := exec.LookPath("openssl")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	cert := selfSigned("127.0.0.1")
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "server.pem")
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	server := exec.CommandContext(t.Context(), program, "s_server", "-accept", addr, "-cert", file, "-tls1_2", "-naccept", "2")
	in, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "ACCEPT") {
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "User-Agent:") { // the request is there
				in.Write([]byte("R\n"))
				// The program handles a line of its input at a time; what follows at once would be part of the command.
				time.Sleep(200 * time.Millisecond)
				in.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"))
			}
		}
	}()
	t.Cleanup(func() {
		in.Close()
		server.Process.Kill()
		<-ended
		server.Wait()
	})
	return "https://" + addr + "/"
}

// TestRenegotiation: a server that asks for a renegotiation after the request is read
// where that is allowed; else the error says so, and nobody tries again.
func TestRenegotiation(t *testing.T) {
	for _, legacy := range []bool{true, false} {
		c := newClient(t, func(cfg *Config) { cfg.InsecureSkipVerify, cfg.TLSLegacy = true, legacy })
		url := renegotiating(t)
		_, h, err := get(c, url)
		if legacy {
			if err != nil || string(h.body) != "hello" {
				t.Errorf("with --tls-legacy: %v", err)
			}
			// The library compares the server's certificate with that of the handshake before.
			if _, h, err := get(c, url); err != nil || string(h.body) != "hello" || c.Stats().Resumed != 0 {
				t.Errorf("with --tls-legacy, a second time: %v, %+v", err, c.Stats())
			}
			continue
		}
		if class(err) != ClassTLS || err.(*Error).Retry || !strings.Contains(err.Error(), "--tls-legacy") {
			t.Errorf("without --tls-legacy: %v", err)
		}
	}
}
