-- live: keeps the list of programs at work on a crawl.
-- KEYS[1]  live, a zset of ids by deadline
-- KEYS[2]  what is known of each, a hash
-- ARGV[1]  id of the program
-- ARGV[2]  ms until its deadline, 0 = take it off
-- ARGV[3]  what is known of it
-- Reply    how many programs are there
-- Cost     O(log programs); what is over is taken off, a thousand at a time
-- Repeat   the deadline moves on; a late copy is over by itself
local call = redis.call
local LIVE, INFO = KEYS[1], KEYS[2]
local id, ttl, known = ARGV[1], tonumber(ARGV[2]), ARGV[3]

local function int(x) return string.format('%.0f', x) end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local deadline = int(now + ttl)

for _, gone in ipairs(call('ZRANGE', LIVE, '-inf', int(now), 'BYSCORE', 'LIMIT', 0, 1000)) do
  call('ZREM', LIVE, gone)
  call('HDEL', INFO, gone)
end

if ttl > 0 then
  -- A clock that was set back lets nobody live longer.
  for _, other in ipairs(call('ZRANGE', LIVE, '(' .. deadline, '+inf', 'BYSCORE', 'LIMIT', 0, 1000)) do
    call('ZADD', LIVE, deadline, other)
  end
  call('ZADD', LIVE, deadline, id)
  call('HSET', INFO, id, known)
  call('PEXPIRE', LIVE, ttl * 2)
  call('PEXPIRE', INFO, ttl * 2)
else
  call('ZREM', LIVE, id)
  call('HDEL', INFO, id)
end
return call('ZCARD', LIVE)
