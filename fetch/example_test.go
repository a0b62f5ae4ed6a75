package fetch_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"seine/fetch"
)

// page collects a body.
type page struct {
	client *fetch.Client
	body   []byte
}

func (p *page) Begin(resp *fetch.Response) bool {
	return resp.Status == 200 && p.client.Accepts(resp)
}

func (p *page) Write(chunk []byte) (int, error) {
	p.body = append(p.body, chunk...)
	return len(chunk), nil
}

func Example() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<p>hello")
	}))
	defer site.Close()

	client, err := fetch.New(fetch.Config{AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	if err != nil {
		panic(err)
	}
	defer client.Close()

	var resp fetch.Response // used again for every page
	p := &page{client: client}
	if err := client.Do(context.Background(), &fetch.Request{URL: site.URL}, &resp, p); err != nil {
		panic(err)
	}
	fmt.Println(resp.Status, resp.ContentType, string(p.body))
	// Output: 200 text/html <p>hello
}
