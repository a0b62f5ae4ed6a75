-- release: what settle writes of the site of a visit: what it gives back with it, its
-- cookies, and what is to be fetched again.
-- KEYS[1..]  those of settle
-- ARGV[1..]  those of settle
-- Reply    none of its own
-- Cost     O(1)
-- Repeat   the caller writes while the site is lent under its token: values by what
--          frees it, cookies by that too and by what settles an outcome, so that a
--          late copy brings back no older ones; what is to be fetched again by what
--          settles its outcome

-- release gives the site back with the values of the visit, and what came of it.
local function release(block, clock, stays, delay, why, failures, got)
  local values = {'clock', int(clock), 'delay', delay}
  local function add(name, value)
    values[#values + 1] = name
    values[#values + 1] = value
  end
  if why ~= '' then add('why', why) end
  if failures ~= '0' then add('failures', failures) end
  if got then add('got', got) end

  call('HDEL', KEYS[block], 'token', 'why', 'failures')
  call('HSET', KEYS[block], unpack(values))
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

-- keep has an entry fetched again, unless its site has most of them already.
local function keep(block, wait, id, entry, most)
  if call('ZCARD', KEYS[block + AGAIN]) >= most and not call('ZSCORE', KEYS[block + AGAIN], id) then
    tally('forgone', 1)
    return
  end
  tally('again', call('ZADD', KEYS[block + AGAIN], int(NOW + wait), id))
  call('HSET', KEYS[block + KEPT], id, entry)
end
