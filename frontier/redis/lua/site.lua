-- site: pauses, blocks, caps one site or sets its override.
-- KEYS[1..9]   as in the prelude
-- KEYS[10..15] the block of the site
-- KEYS[16,17]  the lists of paused and of blocked sites
-- KEYS[18..]   v of each of its leases, when it is blocked
-- ARGV[1]      epoch
-- ARGV[2]      site
-- ARGV[3]      its version as the caller knows it, '' = not yet
-- ARGV[4]      why, for the lists
-- ARGV[5]      fields to change, n
-- ARGV[6..]    per field 2: paused, blocked, cap or override, and its value,
--              '' = none; then the tokens of its leases, when it is blocked
-- Reply        '' done; else the version of the site, which is another, or '!open'
--              when it is to be blocked and lent under a token that is not named
-- Cost         O(log sites); lists of a blocked site are freed in the background
-- Repeat       refused: a change raises the version. A late copy changes nothing
local B, site, n = 10, ARGV[2], tonumber(ARGV[5])
local s = C('HMGET', KEYS[B], 'version', 'token', 'clock', 'delay')
local version = s[1] or '0'
if version ~= ARGV[3] then return version end
local set, block, tokens = {}, false, 5 + 2 * n
for a = 6, tokens, 2 do
  set[ARGV[a]] = ARGV[a + 1]
  if ARGV[a] == 'blocked' and ARGV[a + 1] ~= '' then block = true end
end
if block then
  local named = not s[2]
  for a = tokens + 1, #ARGV do named = named or ARGV[a] == s[2] end
  if not named then return '!open' end
end

C('HSET', KEYS[B], 'version', version + 1)
for name, value in pairs(set) do
  if value == '' then C('HDEL', KEYS[B], name) else C('HSET', KEYS[B], name, value) end
end
for x, name in ipairs({'paused', 'blocked'}) do
  local list = KEYS[15 + x]
  if set[name] == '' then
    C('HDEL', list, site)
  elseif set[name] then
    C('HSET', list, site, int(NOW) .. ' ' .. ARGV[4])
  end
end
if set.blocked or set.cap then C('HSET', KEYS[1], 'ruled', 1) end

-- A blocked site loses its queues and its visits; its clock keeps the delay, for
-- a fetcher may be at it still.
local clock = tonumber(s[3]) or 0
if block then
  local gone = 0
  for p = 0, 3 do gone = gone + C('LLEN', KEYS[B + 1 + p]) end
  local waiting, open = C('ZCARD', KEYS[B + 5]), 0
  for a = tokens + 1, #ARGV do
    local v = KEYS[17 + a - tokens]
    if C('ZREM', KEYS[3], ARGV[a] .. ' ' .. site) == 1 then open = open + C('HLEN', v) C('DEL', v) end
  end
  C('UNLINK', unpack(KEYS, B + 1, B + 5))
  C('HDEL', KEYS[B], 'token')
  if s[2] then clock = math.max(clock, NOW + 1 + (tonumber(s[4]) or 0)) end
  tally('queued', -gone) tally('waiting', -waiting) tally('open', -open)
  tally('blocked', gone + waiting + open)
end
if clock > 0 then C('HSET', KEYS[B], 'clock', int(clock)) end
expire(B, clock)
place(B, site)
count()
return ''
