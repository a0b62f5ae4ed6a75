-- release: what settle writes of the site of a visit: what it gives back with it, and
-- its cookies.
-- KEYS[1..]  those of settle
-- ARGV[1..]  those of settle
-- Reply    none of its own
-- Cost     O(1)
-- Repeat   the caller writes while the site is lent under its token: values by what
--          frees it, cookies by that too and by what settles an outcome, so that a
--          late copy brings back no older ones

-- release gives the site back with the values of the visit.
local function release(block, clock, stays, delay, why, failures)
  call('HDEL', KEYS[block], 'token', 'why', 'failures')
  call('HSET', KEYS[block], 'clock', int(clock), 'delay', delay)
  if why ~= '' then call('HSET', KEYS[block], 'why', why) end
  if failures ~= '0' then call('HSET', KEYS[block], 'failures', failures) end
  expire(block, clock, stays)
end

-- keep_cookies has the site keep these.
local function keep_cookies(block, cookies)
  if cookies == '' then
    call('HDEL', KEYS[block], 'cookies')
  else
    call('HSET', KEYS[block], 'cookies', cookies)
  end
end
