package shard

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/redis/go-redis/v9"
)

// Script is one Lua script, known to servers by its SHA-1.
type Script struct {
	Name string

	text, sha string
	parts     []ScriptPart // of text, after its flags
	first     int          // line of text that the first part starts at
}

// ScriptPart is a file that a script is put together of.
type ScriptPart struct{ File, Text string }

// JoinScript is NewScript of some files in turn. An error of the script names the
// file and the line there. flags is the first line of the script, such as
// "#!lua flags=allow-oom\n", or "".
func JoinScript(name, flags string, parts ...ScriptPart) *Script {
	text := flags
	for _, p := range parts {
		text += p.Text
	}
	s := NewScript(name, text)
	s.parts, s.first = parts, 1+strings.Count(flags, "\n")
	return s
}

// NewScript names a script text. The name labels its latencies.
func NewScript(name, text string) *Script {
	sum := sha1.Sum([]byte(text))
	return &Script{Name: name, text: text, sha: hex.EncodeToString(sum[:])}
}

// secondsOf is the client's histogram of the latencies of a script: 100 us to 13 s.
func (c *Client) secondsOf(s *Script) *metrics.PrometheusHistogram {
	if h, ok := c.seconds.Load(s.Name); ok {
		return h.(*metrics.PrometheusHistogram)
	}
	h := c.cfg.Metrics.GetOrCreatePrometheusHistogramExt(fmt.Sprintf("seine_shard_call_seconds{script=%q}", s.Name), metrics.ExponentialBuckets(1e-4, 2, 18))
	c.seconds.Store(s.Name, h)
	return h
}

// Run runs a script of shard k on the master of keys[0] and returns its reply:
// int64, string, nil or []any of these. It repeats the call through moves,
// failovers and broken connections until ctx ends, so a script must have the
// same effect run twice. All keys must share one slot. args are strings,
// []byte, numbers, booleans, pointers to these or encoding.BinaryMarshaler, not kept.
// Errors are *Error; an error of the script itself is returned at once.
func (c *Client) Run(ctx context.Context, k int, s *Script, keys []string, args ...any) (any, error) {
	start := time.Now()
	words := s.words(keys, args)
	var reply any
	err := c.repeat(ctx, k, s.Name, keys[0], func(n *redis.Client, ask bool) (err error) {
		var p processor = n
		if ask { // ASKING and the call must share a connection
			conn := n.Conn()
			defer conn.Close()
			p = conn
		}
		reply, err = s.eval(ctx, p, ask, words)
		return err
	})
	c.secondsOf(s).UpdateDuration(start)
	if err != nil && err != redis.Nil {
		return nil, s.locate(err)
	}
	return reply, nil
}

// RunAck is Run, and then waits until so many replicas have what the script
// wrote, or timeout is over: acked says how many do. The script must have
// written something each time, or else WAIT speaks of older writes. Script and
// WAIT travel on one connection to the owning master.
func (c *Client) RunAck(ctx context.Context, k int, s *Script, replicas int, timeout time.Duration, keys []string, args ...any) (reply any, acked int, err error) {
	start := time.Now()
	words := s.words(keys, args)
	err = c.repeat(ctx, k, s.Name, keys[0], func(n *redis.Client, ask bool) error {
		conn := n.Conn()
		defer conn.Close()
		v, err := s.eval(ctx, conn, ask, words)
		if err != nil && err != redis.Nil {
			return err
		}
		count, err := conn.Wait(ctx, replicas, timeout).Result()
		reply, acked = v, int(count)
		return err
	})
	c.secondsOf(s).UpdateDuration(start)
	if err != nil {
		return nil, 0, s.locate(err)
	}
	return reply, acked, nil
}

// scriptError is an error of a script that says where in its files it happened.
type scriptError struct {
	error
	text string
}

func (e *scriptError) Error() string { return e.text }
func (e *scriptError) Unwrap() error { return e.error }

// scriptLine is how servers name a line of what they ran.
var scriptLine = regexp.MustCompile(`@?user_script:([0-9]+)`)

// locate names files and lines in an error of the script.
func (s *Script) locate(err error) error {
	var e *Error
	if s.parts == nil || !errors.As(err, &e) || !scriptLine.MatchString(e.Err.Error()) {
		return err
	}
	text := scriptLine.ReplaceAllStringFunc(e.Err.Error(), func(place string) string {
		line, err := strconv.Atoi(place[strings.LastIndexByte(place, ':')+1:])
		if err != nil || line < s.first {
			return place
		}
		line -= s.first - 1
		for _, p := range s.parts {
			lines := strings.Count(p.Text, "\n")
			if line <= lines {
				return fmt.Sprintf("%s:%d", p.File, line)
			}
			line -= lines
		}
		return place
	})
	return &Error{Shard: e.Shard, Op: e.Op, Err: &scriptError{e.Err, text}}
}

// Do runs one plain command on the master of key, a key of shard k, and
// repeats it as Run does; so the command must have the same effect run twice.
// A reply of nil is nil.
func (c *Client) Do(ctx context.Context, k int, key string, args ...any) (any, error) {
	var reply any
	err := c.repeat(ctx, k, fmt.Sprint(args[0]), key, func(n *redis.Client, ask bool) error {
		var p processor = n
		if ask {
			conn := n.Conn()
			defer conn.Close()
			if err := process(ctx, conn, "asking").Err(); err != nil {
				return err
			}
			p = conn
		}
		cmd := process(ctx, p, args...)
		reply = cmd.Val()
		return cmd.Err()
	})
	if err != nil && err != redis.Nil {
		return nil, err
	}
	return reply, nil
}

// words is the command EVALSHA with its arguments; EVAL replaces the first two.
func (s *Script) words(keys []string, args []any) []any {
	words := make([]any, 0, 3+len(keys)+len(args))
	words = append(words, "evalsha", s.sha, len(keys))
	for i := range keys {
		words = append(words, &keys[i]) // a pointer needs no memory of its own there
	}
	return append(words, args...)
}

// processor is a connection, or a pool of them, to one node.
type processor interface {
	Process(context.Context, redis.Cmder) error
}

func process(ctx context.Context, p processor, words ...any) *redis.Cmd {
	cmd := redis.NewCmd(ctx, words...)
	p.Process(ctx, cmd) // its error stays in cmd
	return cmd
}

// eval runs the script on one node, which is sent its text when it does not
// know it yet.
func (s *Script) eval(ctx context.Context, p processor, ask bool, words []any) (any, error) {
	if ask {
		if err := process(ctx, p, "asking").Err(); err != nil {
			return nil, err
		}
	}
	cmd := process(ctx, p, words...)
	if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		if ask {
			if err := process(ctx, p, "asking").Err(); err != nil {
				return nil, err
			}
		}
		full := append([]any{"eval", s.text}, words[2:]...)
		cmd = process(ctx, p, full...)
	}
	return cmd.Val(), cmd.Err()
}
