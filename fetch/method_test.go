package fetch

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestMethods: method and body go out with their length, and an answer to HEAD has no
// body whatever it says; the connection is used again.
func TestMethods(t *testing.T) {
	conns := map[string]bool{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conns[r.RemoteAddr] = true
		body, err := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/plain")
		text := fmt.Sprintf("%s %d %s %q %v", r.Method, r.ContentLength, r.Header.Get("Content-Length"), body, err)
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		w.Header().Set("X-Method", r.Method)
		io.WriteString(w, text)
	}))
	defer s.Close()
	c := newClient(t, nil)
	long := strings.Repeat("x", 4096)
	for _, want := range []struct{ method, body, answer string }{
		{"", "", `GET 0  "" <nil>`},
		{"GET", "q", `GET 1 1 "q" <nil>`},
		{"POST", "a=1&b=2", `POST 7 7 "a=1&b=2" <nil>`},
		{"POST", "", `POST 0 0 "" <nil>`},
		{"HEAD", "", ""},
		{"PUT", long, `PUT 4096 4096 "` + long + `" <nil>`},
		{"DELETE", "", `DELETE 0  "" <nil>`},
		{"QUERY", "\r\n\r\nGET / HTTP/1.1\r\n", `QUERY 20 20 "\r\n\r\nGET / HTTP/1.1\r\n" <nil>`},
	} {
		var resp Response
		var h collector
		var w Wire
		err := c.Do(t.Context(), &Request{URL: s.URL, Method: want.method, Body: []byte(want.body), Wire: &w}, &resp, &h)
		if err != nil || string(h.body) != want.answer || resp.Status != 200 || h.began != 1 || !w.Whole || !strings.HasSuffix(string(w.Request), "\r\n\r\n"+want.body) {
			t.Errorf("%s: %v, %d, %q, on the wire %q, whole %v", want.method, err, resp.Status, h.body, w.Request, w.Whole)
		}
		if want.method != "" && resp.Header.Get("X-Method") != want.method {
			t.Errorf("%s arrived as %s", want.method, resp.Header.Get("X-Method"))
		}
	}
	if len(conns) != 1 {
		t.Errorf("%d connections", len(conns))
	}
	for _, method := range []string{"CONNECT", "G ET", "GET / HTTP/1.1\r\nX:"} {
		var resp Response
		if err := c.Do(t.Context(), &Request{URL: s.URL, Method: method}, &resp, &collector{}); class(err) != ClassURL || resp.Status != 0 {
			t.Errorf("%q: %v", method, err)
		}
	}
}
