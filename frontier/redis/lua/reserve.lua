-- reserve: grants a time for one request to a site that the caller does not lease (a
-- cross-site reservation).
-- KEYS[1..9]   as in the prelude
-- KEYS[10..17] the block of the site
-- ARGV[1]      epoch
-- ARGV[2]      site
-- ARGV[3]      a token of this call
-- ARGV[4]      delay, ms, of a site that has none of its own
-- ARGV[5]      slack, ms: the request starts at most so long after its time
-- ARGV[6]      ahead, ms: at most so far ahead may its time be
-- ARGV[7]      times that may be granted in a row while URLs of the site wait
-- ARGV[8..9]   ms until the caller should retry: at least, at most
-- Reply        {1 granted, 0 not now, -1 the site is paused or blocked; ms until its
--              time, or until the caller should retry}
-- Cost         O(log sites)
-- Repeat       the same time, unless another was granted meanwhile: then a later one,
--              and the first passes unused
local site, token = ARGV[2], ARGV[3]
local default_delay, slack, ahead_most = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local most, retry_after, most_wait = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local BLOCK = 10
local SITE = KEYS[BLOCK]

-- given is 'token time visits times': the last time granted, after how many visits
-- (modulo 8), and how many since. reserved_until is when the last caller that was
-- refused will be done.
local s = call('HMGET', SITE, 'clock', 'token', 'delay', 'paused', 'blocked', 'round', 'given', 'reserved_until')
local clock, site_token, delay = tonumber(s[1]) or 0, s[2], tonumber(s[3]) or 0
local stopped, round, reserved_until = s[4] or s[5], s[6] or '0', tonumber(s[8]) or 0
local last, at, after, times = string.match(s[7] or '', '^(%S+) (%S+) (%S+) (%S+)$')
if last == token then return {1, math.max(0, at - NOW)} end
if stopped then return {-1, retry_after} end

if delay <= 0 then delay = default_delay end
if after ~= round then times = 0 end
local due = math.max(clock, NOW)

-- waits reports whether the site has URLs that are due.
local function waits()
  if call('EXISTS', unpack(KEYS, BLOCK + QUEUE, BLOCK + QUEUE + 3)) > 0 then return true end
  for w = RETRIES, RECRAWLS do
    if call('ZRANGE', KEYS[BLOCK + w], '-inf', int(NOW), 'BYSCORE', 'LIMIT', 0, 1)[1] then return true end
  end
  return false
end

try_site()
if site_token or due > NOW + ahead_most or times + 0 >= most and waits() then
  local retry_at = math.min(math.max(reserved_until, due, NOW + retry_after), NOW + most_wait)
  call('HSET', SITE, 'reserved_until', int(retry_at + slack + delay))
  expire_site(BLOCK, clock)
  return {0, retry_at - NOW}
end

clock = due + slack + delay
call('HSET', SITE, 'clock', int(clock), 'given', table.concat({token, int(due), round, times + 1}, ' '))
expire_site(BLOCK, clock)
place_site(BLOCK, site)
return {1, due - NOW}
