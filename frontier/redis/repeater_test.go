package redis_test

import (
	"bytes"
	"context"
	"encoding"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	goredis "github.com/redis/go-redis/v9"
)

// repeater is a network that runs scripts more often than they were sent: a
// hook of go-redis.
type repeater struct {
	mode atomic.Int32
	mu   sync.Mutex
	rand *rand.Rand
	old  []stored
}

type stored struct {
	words []any
	run   goredis.ProcessHook
}

func (r *repeater) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (r *repeater) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

func (r *repeater) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		name := strings.ToLower(cmd.Name())
		keys, _ := strconv.Atoi(fmt.Sprint(argument(cmd, 2)))
		if name != "evalsha" || keys < 9 || r.mode.Load() == once {
			return next(ctx, cmd)
		}
		if r.mode.Load() == twice {
			err := next(ctx, cmd)
			if keys > 9 { // tick claims other sites when it is repeated
				again := goredis.NewCmd(ctx, cmd.Args()...)
				next(ctx, again)
			}
			return err
		}
		return r.disturb(ctx, cmd, next)
	}
}

// words copies the arguments of a call, whose memory may be used again.
func words(cmd goredis.Cmder) []any {
	var out []any
	for _, arg := range cmd.Args() {
		switch v := arg.(type) {
		case string:
			arg = strings.Clone(v)
		case *string:
			arg = strings.Clone(*v)
		case []byte:
			arg = bytes.Clone(v)
		case encoding.BinaryMarshaler:
			part, _ := v.MarshalBinary() // a part of the caller's memory
			arg = bytes.Clone(part)
		}
		out = append(out, arg)
	}
	return out
}

func argument(cmd goredis.Cmder, i int) any {
	if args := cmd.Args(); i < len(args) {
		return args[i]
	}
	return ""
}

func (r *repeater) disturb(ctx context.Context, cmd goredis.Cmder, next goredis.ProcessHook) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.old) > 0 && r.rand.IntN(10) == 0 {
		late := r.old[r.rand.IntN(len(r.old))]
		late.run(ctx, goredis.NewCmd(ctx, late.words...))
	}
	r.old = append(r.old, stored{words(cmd), next})
	if len(r.old) > 200 {
		r.old = r.old[100:]
	}
	if r.rand.IntN(10) > 0 {
		return next(ctx, cmd)
	}
	// The call is repeated. The driver must know what took effect, so it gets
	// the first reply, but for admissions, where seen will do.
	first := goredis.NewCmd(ctx, words(cmd)...)
	if err := next(ctx, first); err != nil {
		cmd.SetErr(err)
		return err
	}
	err := next(ctx, cmd)
	if _, admission := first.Val().(string); !admission {
		cmd.(*goredis.Cmd).SetVal(first.Val())
	}
	return err
}
