// Command demo crawls a synthetic web with a fetcher in one process, shows how
// it goes, and holds the result against the web's answer key.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"seine/bench/web"
	"seine/extract/sink/jsonl"
)

// slack is how much earlier than the delay the server's clock may see a request
// on a machine that does everything at once: what lies between a request that
// was sent and a log that noted it.
const slack = 5 * time.Millisecond

func main() {
	fetcher := flag.String("fetcher", "bin/fetcher", "the fetcher to run")
	seed := flag.Uint64("seed", 1, "another seed is another web")
	delay := flag.Duration("delay", 25*time.Millisecond, "between requests to one site")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *fetcher, *seed, *delay); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, fetcher string, seed uint64, delay time.Duration) error {
	synthetic, err := web.New(web.Demo(seed))
	if err != nil {
		return err
	}
	server, err := synthetic.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer server.Close()
	dir, err := os.MkdirTemp("", "demo")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "pages.jsonl")
	args := []string{"--embedded", "--allow-net", "127.0.0.0/8", "--per-address", "0", "--connect-to", server.ConnectTo(), "--delay", delay.String(),
		"--contact", "https://example.com/crawler", "--out", out}
	for _, s := range synthetic.Seeds() {
		args = append(args, "--seed", s)
	}
	pages := 0
	for site := range synthetic.Sites() {
		pages += synthetic.Pages(site)
	}
	fmt.Printf("A synthetic web of %d sites and about %d pages listens at %s.\nIt is crawled by %s --embedded, %s between requests to one site:\n\n", synthetic.Sites(), pages, server.Addr(), fetcher, delay)
	cmd := exec.CommandContext(ctx, fetcher, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", fetcher, err)
	}
	report, err := synthetic.Verify(web.Plan{Delay: delay, Slack: slack}, synthetic.Log(), jsonl.Records(out))
	if err != nil {
		return err
	}
	fmt.Printf("\nThe answer key says:\n%s", report)
	if !report.OK() {
		return errors.New("the crawl differs from the answer key")
	}
	fmt.Println("Every page was fetched once, none too early, and all records are right.")
	return nil
}
