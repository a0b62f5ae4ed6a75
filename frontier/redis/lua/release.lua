-- release: what settle writes of the site of a visit: its release, its cookies, and its
-- recrawls.
-- KEYS[1..]  those of settle
-- ARGV[1..]  those of settle
-- Reply    none of its own
-- Cost     O(1)
-- Repeat   the caller writes only while its token leases the site: values with the
--          release, cookies with that or with an outcome that settles, so that a late
--          copy writes no older ones; a recrawl with the outcome that settles

-- release_site ends the lease with the values of the visit, and writes the totals.
local function release_site(block, clock, stays, delay, why, failures, totals)
  local values = {'clock', int(clock), 'delay', delay}
  local function add(name, value)
    values[#values + 1] = name
    values[#values + 1] = value
  end
  if why ~= '' then add('why', why) end
  if failures ~= '0' then add('failures', failures) end
  if totals then add('totals', totals) end

  call('HDEL', KEYS[block], 'token', 'why', 'failures')
  call('HSET', KEYS[block], unpack(values))
  expire_site(block, clock, stays)
end

-- keep_cookies replaces the cookies of the site.
local function keep_cookies(block, cookies)
  if cookies == '' then
    call('HDEL', KEYS[block], 'cookies')
  else
    call('HSET', KEYS[block], 'cookies', cookies)
  end
end

-- keep_recrawl schedules a recrawl of an entry, unless its site has most of them.
local function keep_recrawl(block, wait, id, entry, most)
  if call('ZCARD', KEYS[block + RECRAWLS]) >= most and not call('ZSCORE', KEYS[block + RECRAWLS], id) then
    add_stat('forgone', 1)
    return
  end
  add_stat('recrawls', call('ZADD', KEYS[block + RECRAWLS], int(NOW + wait), id))
  call('HSET', KEYS[block + ENTRIES], id, entry)
end
