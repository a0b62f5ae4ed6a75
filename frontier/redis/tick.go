package redis

import (
	"context"
	"errors"
	"strconv"
	"time"

	"seine/frontier"
	"seine/shard"
)

// The bounds of one call, which keep it under a millisecond or so.
const (
	tickMost   = 500 // leases to extend
	wantMost   = 500 // due sites
	expireMost = 100 // expired leases
)

// Tick extends the leases of a fetcher and names those that are gone, names
// sites that are due, up to 500 a call, and leases that nobody extended. Call it
// once a second and when there is room for more work; a visit whose lease is
// gone must be dropped at once. An extended lease counts from before the call.
//
// A repeat, after a lost reply, claims other sites; those of the lost reply are
// due again when their claim has passed. Cost: one script call for each 500
// leases.
func (f *Frontier) Tick(ctx context.Context, k int, req frontier.TickRequest) (frontier.TickReply, error) {
	var reply frontier.TickReply
	for {
		part := req
		part.Extend = req.Extend[:min(len(req.Extend), tickMost)]
		req.Extend = req.Extend[len(part.Extend):]
		last := len(req.Extend) == 0
		if !last {
			part.Want, part.MaxExpired, part.MaxLag = 0, 0, 0
		}
		gone := reply.Gone
		var err error
		if reply, err = f.tick(ctx, k, part); err != nil {
			return frontier.TickReply{}, err
		}
		reply.Gone = append(gone, reply.Gone...)
		if last {
			if reply.Rev < f.Settings().Rev {
				err = f.catchUp(ctx, k)
			}
			return reply, err
		}
	}
}

func (f *Frontier) tick(ctx context.Context, k int, req frontier.TickRequest) (frontier.TickReply, error) {
	args := make([]any, 0, 8+len(req.Extend))
	args = append(args, f.cfg.Lease.Milliseconds(), Milliseconds(f.cfg.Claim), max(0, min(req.Want, wantMost)), max(0, min(req.MaxExpired, expireMost)), Milliseconds(req.MaxLag), req.LastNow, Milliseconds(req.Elapsed), Milliseconds(req.Patience))
	for _, l := range req.Extend {
		args = append(args, MemberOf(l))
	}
	raw, err := f.Call(ctx, k, tickScript, nil, args)
	if err != nil {
		return frontier.TickReply{}, err
	}
	reply, err := parseTick(raw, req.Extend)
	if err != nil {
		return frontier.TickReply{}, Malformed(k, "tick", raw)
	}
	return reply, nil
}

var errForm = errors.New("frontier: unknown form")

// parseTick reads the reply of the script.
func parseTick(raw any, extend []frontier.Lease) (reply frontier.TickReply, err error) {
	r := shard.Array(raw)
	if len(r) != 9 {
		return reply, errForm
	}
	for _, v := range shard.Array(r[0]) {
		at, _ := v.(int64)
		if at < 1 || at > int64(len(extend)) {
			return reply, errForm
		}
		reply.Gone = append(reply.Gone, extend[at-1])
	}
	due := shard.Array(r[1])
	for ; len(due) >= 3; due = due[3:] {
		class, _ := due[1].(int64)
		reply.Due = append(reply.Due, frontier.Ticket{Site: shard.Text(due[0]), Class: uint8(class), Score: shard.Text(due[2])})
	}
	expired := shard.Array(r[2])
	for ; len(expired) >= 2; expired = expired[2:] {
		deadline, err := strconv.ParseInt(shard.Text(expired[1]), 10, 64)
		if err != nil {
			return reply, err
		}
		reply.Expired = append(reply.Expired, frontier.Expired{Lease: LeaseOf(shard.Text(expired[0])), Deadline: deadline})
	}
	next, ok := r[3].(int64)
	if !ok {
		return reply, errForm
	}
	reply.Next = time.Duration(next) * time.Millisecond
	if reply.Rev, err = strconv.ParseInt(shard.Text(r[4]), 10, 64); err != nil {
		return reply, err
	}
	reply.Paused = r[5] == int64(1)
	behind, isBehind := r[6].(int64)
	jump, isJump := r[7].(int64)
	now, isNow := r[8].(int64)
	if !isBehind || !isJump || !isNow {
		return reply, errForm
	}
	reply.Lag, reply.ClockJump, reply.Now = time.Duration(behind)*time.Millisecond, time.Duration(jump)*time.Millisecond, now
	return reply, nil
}
