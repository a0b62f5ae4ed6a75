-- walls: what settle writes of walls that answered in place of the site of a visit.
-- KEYS[1..]  those of settle; the last is walled, a zset of sites by when the fleet's
--            back-off from them ends, where a settlement has walls
-- ARGV[1..]  those of settle
-- Reply      none of its own
-- Cost       O(log walled)
-- Repeat     values, written as cookies are: a late copy writes no older ones
local WALLED = KEYS[#KEYS]
local STALE_SITES = 10 -- taken off the list by one call at most

-- keep_walls replaces the row of walls of the site: how many, the vendor of the last, and
-- ms of the back-off, nil = none yet. It returns the clock, which waits for its end.
local function keep_walls(block, site, clock, count, vendor, pause)
  local row = call('HMGET', KEYS[block], 'walls')[1]
  local since, ends = string.match(row or '', '^%d+ (%d+) (%d+) ')
  ends = tonumber(ends) or 0
  if count == 0 then
    if clock > NOW and clock <= ends then -- a page came beside the last wall
      clock = NOW
      call('HSET', KEYS[block], 'clock', int(clock))
    end
    call('HDEL', KEYS[block], 'walls')
    call('ZREM', WALLED, site)
    return clock
  end

  if pause then
    ends = math.max(ends, NOW + 1 + pause)
    clock = math.max(clock, ends)
    call('HSET', KEYS[block], 'clock', int(clock)) -- for a fetcher that is lost before it releases the site
    call('ZADD', WALLED, int(ends), site)
    local stale = call('ZRANGE', WALLED, '-inf', int(NOW - DAY), 'BYSCORE', 'LIMIT', 0, STALE_SITES)
    if stale[1] then call('ZREM', WALLED, unpack(stale)) end
  end
  call('HSET', KEYS[block], 'walls', table.concat({int(count), since or int(NOW), int(ends), vendor}, ' '))
  return clock
end
