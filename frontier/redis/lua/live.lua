-- live: keeps the list of programs at work on a crawl.
-- KEYS[1]  live, a zset of ids by deadline
-- KEYS[2]  what is known of each, a hash
-- KEYS[3]  those that vanished, as KEYS[1]
-- ARGV[1]  id of the program
-- ARGV[2]  ms until its deadline, 0 = take it off
-- ARGV[3]  what is known of it
-- Reply    how many programs are there
-- Cost     O(log programs); what is over goes to KEYS[3], and from there after an hour,
--          or where they are more than a thousand; so many at a time
-- Repeat   the deadline moves on; a late copy is over by itself
local call = redis.call
local LIVE, INFO, GONE = KEYS[1], KEYS[2], KEYS[3]
local id, ttl, known = ARGV[1], tonumber(ARGV[2]), ARGV[3]

local function int(x) return string.format('%.0f', x) end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local deadline = int(now + ttl)

-- Who is over without a word is kept beside for an hour, for those who ask.
local HOUR, MOST = 3600000, 1000
local over = call('ZRANGE', LIVE, '-inf', int(now), 'BYSCORE', 'LIMIT', 0, MOST, 'WITHSCORES')
for i = 1, #over, 2 do
  call('ZREM', LIVE, over[i])
  call('ZADD', GONE, over[i + 1], over[i])
end
local function forget(ids)
  for _, gone in ipairs(ids) do
    call('ZREM', GONE, gone)
    call('HDEL', INFO, gone)
  end
end
forget(call('ZRANGE', GONE, '-inf', int(now - HOUR), 'BYSCORE', 'LIMIT', 0, MOST))
local more = call('ZCARD', GONE) - MOST
if more > 0 then forget(call('ZRANGE', GONE, 0, math.min(more, MOST) - 1)) end
call('ZREM', GONE, id)
call('PEXPIRE', GONE, HOUR)

if ttl > 0 then
  -- A clock that was set back lets nobody live longer.
  for _, other in ipairs(call('ZRANGE', LIVE, '(' .. deadline, '+inf', 'BYSCORE', 'LIMIT', 0, 1000)) do
    call('ZADD', LIVE, deadline, other)
  end
  call('ZADD', LIVE, deadline, id)
  call('HSET', INFO, id, known)
  for _, key in ipairs(KEYS) do call('PEXPIRE', key, HOUR + ttl) end
else
  call('ZREM', LIVE, id)
  call('HDEL', INFO, id)
end
return call('ZCOUNT', LIVE, '(' .. int(now), '+inf')
