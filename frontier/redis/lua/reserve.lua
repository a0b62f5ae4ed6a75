-- reserve: gives a time for one request to a site that is not lent to who asks.
-- KEYS[1..9]   as in the prelude
-- KEYS[10..17] the block of the site
-- ARGV[1]      epoch
-- ARGV[2]      site
-- ARGV[3]      a token of this call
-- ARGV[4]      delay, ms, of a site that has none of its own
-- ARGV[5]      slack, ms: the request starts at most so long after its time
-- ARGV[6]      ahead, ms: at most so far ahead may its time be
-- ARGV[7]      times that may be given in a row while URLs of the site wait
-- ARGV[8..9]   ms until it is worth asking again: at least, at most
-- Reply        {1 given, 0 not now, -1 the site is paused or blocked; ms until its
--              time, or until it is worth asking again}
-- Cost         O(log sites)
-- Repeat       the same time, unless another was given meanwhile: then a later one,
--              and the first passes unused
local site, token = ARGV[2], ARGV[3]
local default_delay, slack, ahead_most = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local most, again, line_most = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local BLOCK = 10
local SITE = KEYS[BLOCK]

-- given is 'token time visits times': what was given last, after how many visits
-- (modulo 8), and how often since. line is when the last of those who were sent
-- away will ask again.
local s = call('HMGET', SITE, 'clock', 'token', 'delay', 'paused', 'blocked', 'turn', 'given', 'line')
local clock, lent, delay = tonumber(s[1]) or 0, s[2], tonumber(s[3]) or 0
local stopped, visits, line = s[4] or s[5], s[6] or '0', tonumber(s[8]) or 0
local last, at, after, times = string.match(s[7] or '', '^(%S+) (%S+) (%S+) (%S+)$')
if last == token then return {1, math.max(0, at - NOW)} end
if stopped then return {-1, again} end

if delay <= 0 then delay = default_delay end
if after ~= visits then times = 0 end
local due = math.max(clock, NOW)

-- waits says whether the site has URLs that could be asked for.
local function waits()
  if call('EXISTS', unpack(KEYS, BLOCK + QUEUE, BLOCK + QUEUE + 3)) > 0 then return true end
  for w = RETRIES, AGAIN do
    if call('ZRANGE', KEYS[BLOCK + w], '-inf', int(NOW), 'BYSCORE', 'LIMIT', 0, 1)[1] then return true end
  end
  return false
end

try_site()
if lent or due > NOW + ahead_most or times + 0 >= most and waits() then
  local back = math.min(math.max(line, due, NOW + again), NOW + line_most)
  call('HSET', SITE, 'line', int(back + slack + delay))
  expire(BLOCK, clock)
  return {0, back - NOW}
end

clock = due + slack + delay
call('HSET', SITE, 'clock', int(clock), 'given', table.concat({token, int(due), visits, times + 1}, ' '))
expire(BLOCK, clock)
place(BLOCK, site)
return {1, due - NOW}
