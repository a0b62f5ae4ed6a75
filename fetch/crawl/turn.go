package crawl

import "seine/frontier"

// turn is what a visit holds while it waits to make its next request.
type turn struct {
	loan     *loan
	hand     *hand // a slot, when held
	reserved bool  // the lane counted this visit's first demand already
}

// permitted waits until the site's clock, a slot and the lease allow a request,
// and robots.txt allows this URL, which then holds a page of the budget and,
// in t, a slot. It returns allowed, settled (without a request) or over.
func (t *turn) permitted(item *frontier.Item) judgement {
	l := t.loan
	for t.wait() {
		switch j := t.hand.judge(l, item); j {
		case judgedAllowed:
			if !l.lane.w.budget.take() {
				return judgedOver
			}
			return j
		case judgedSettled, judgedOver:
			return j
		}
	}
	return judgedOver
}

// wait sleeps until the site's clock allows a request, without a slot if it
// has to, and then holds one. False means that the visit is over: also when the
// clock is so far ahead that the site is better given back.
func (t *turn) wait() bool {
	l, w := t.loan, t.loan.lane.w
	for {
		if !l.mayGoOn() {
			return false
		}
		l.follow(w.policy.Load())
		pause := l.untilNext()
		if l.doom() != nil {
			pause = 0
		}
		if pause > visitSpan {
			return false
		}
		if pause <= 0 && t.hand != nil {
			return true
		}
		if pause > 0 {
			t.end()
			w.resting.Add(1)
			ok := sleep(l.ctx, w.stopping, pause)
			w.resting.Add(-1)
			if !ok {
				return false
			}
		}
		h, err := w.slots.acquire(l.ctx, t.reserved)
		t.reserved = false
		if err != nil {
			return false
		}
		t.hand = h
	}
}

// end gives back what the turn holds.
func (t *turn) end() {
	if t.hand != nil {
		t.loan.lane.w.slots.release(t.hand)
		t.hand = nil
	}
	if t.reserved {
		t.loan.lane.w.slots.unreserve(1)
		t.reserved = false
	}
}
