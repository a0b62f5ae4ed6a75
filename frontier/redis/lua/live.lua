-- live: keeps the list of programs at work on a crawl.
-- KEYS[1]  live, a zset of ids by deadline
-- KEYS[2]  what is known of each, a hash
-- KEYS[3]  those that vanished, a zset as KEYS[1]
-- KEYS[4]  the runs on record, a zset of ids by when each first announced itself or, once
--          it has ended, when it left
-- KEYS[5]  what is known of each of them, a hash
-- KEYS[6..7]  of KEYS[1] those with ARGV[5], and with ARGV[6]
-- ARGV[1]  id of the program
-- ARGV[2]  ms until its deadline, 0 = take it off
-- ARGV[3]  what is known of it
-- ARGV[4]  how many runs stay on record, its own among them when it comes and when it
--          is taken off; 0 = its own does not
-- ARGV[5]  1 if its hosts wait for their share of an address
-- ARGV[6]  1 if it has room for more sites
-- Reply    {how many programs are there, how many of KEYS[6], and of KEYS[7]}
-- Cost     O(log programs). Programs past their deadline move to KEYS[3], and leave it
--          after an hour or beyond a thousand, a thousand a call. O(log runs) when a
--          run is put on record
-- Repeat   the deadline moves on; what a late copy sets expires by itself
local call = redis.call
local LIVE, INFO, GONE, RUNS, RUNINFO = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, ttl, known, runs_kept = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])

local function int(x) return string.format('%.0f', x) end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local deadline = int(now + ttl)

-- Rights that would be missed only after the first write.
for _, name in ipairs {'ZREM', 'ZSCORE'} do call(name, LIVE, '') end
call('ZCARD', LIVE)
call('ZCOUNT', LIVE, 0, 0)
call('ZADD', LIVE, 'XX', 0, '')
call('HDEL', INFO, '')
call('PEXPIRE', LIVE, 1, 'GT')
call('ZREMRANGEBYSCORE', LIVE, '(0', '(0')

-- A program whose deadline passed stays in KEYS[3] for an hour.
local HOUR, MOST = 3600000, 1000
local over = call('ZRANGE', LIVE, '-inf', int(now), 'BYSCORE', 'LIMIT', 0, MOST, 'WITHSCORES')
call('HSET', INFO, id, known)
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

-- record_run puts a run on record, and drops the oldest beyond the bound.
local function record_run()
  call('ZADD', RUNS, int(now), id)
  call('HSET', RUNINFO, id, known)
  local over = call('ZCARD', RUNS) - runs_kept
  if over <= 0 then return end
  for _, old in ipairs(call('ZRANGE', RUNS, 0, over - 1)) do
    call('ZREM', RUNS, old)
    call('HDEL', RUNINFO, old)
  end
end

-- list_program puts the program on a list, or takes it off.
local function list_program(list, yes)
  call('ZREMRANGEBYSCORE', list, '-inf', int(now))
  if yes and ttl > 0 then
    call('ZADD', list, deadline, id)
    call('PEXPIRE', list, ttl)
  else
    call('ZREM', list, id)
  end
end
list_program(KEYS[6], ARGV[5] == '1')
list_program(KEYS[7], ARGV[6] == '1')

if ttl > 0 then
  -- A clock that was set back lets nobody live longer.
  for _, other in ipairs(call('ZRANGE', LIVE, '(' .. deadline, '+inf', 'BYSCORE', 'LIMIT', 0, 1000)) do
    call('ZADD', LIVE, deadline, other)
  end
  local came = call('ZADD', LIVE, deadline, id) == 1
  for _, key in ipairs {LIVE, INFO, GONE} do call('PEXPIRE', key, HOUR + ttl) end
  if came and runs_kept > 0 and not call('ZSCORE', RUNS, id) then record_run() end
else
  call('ZREM', LIVE, id)
  call('HDEL', INFO, id)
  if runs_kept > 0 then record_run() end
end
return {call('ZCOUNT', LIVE, '(' .. int(now), '+inf'), call('ZCARD', KEYS[6]), call('ZCARD', KEYS[7])}
