-- site: pauses, blocks or caps one site, or sets its override or credentials.
-- KEYS[1..9]   as in the prelude
-- KEYS[10..17] the block of the site
-- KEYS[18,19]  the lists of paused and of blocked sites
-- KEYS[20]     walled, the list of sites behind walls
-- KEYS[21..]   v of each of its leases, when it is blocked
-- ARGV[1]      epoch
-- ARGV[2]      site
-- ARGV[3]      its version as the caller knows it, '' = not yet
-- ARGV[4]      why, for the lists
-- ARGV[5]      how many fields to change
-- ARGV[6..]    per field 2: paused, blocked, cap, override, auth or walls, and its
--              value, '' = none, the only one of walls; then the tokens of its leases, when it is blocked
-- Reply        '' done; else the version of the site, which is another. Error OPEN when
--              it is to be blocked and leased under a token that is not named
-- Cost         O(log sites); lists of a blocked site are freed in the background
-- Repeat       refused: a change raises the version. A late copy changes nothing
local site, known_version, why = ARGV[2], ARGV[3], ARGV[4]
local LAST_FIELD = 5 + 2 * tonumber(ARGV[5])
local BLOCK = 10
local SITE, LISTS, WALLED = KEYS[BLOCK], {paused = KEYS[18], blocked = KEYS[19]}, KEYS[20]

local s = call('HMGET', SITE, 'version', 'token', 'clock', 'delay', 'walls')
local version, site_token, clock, delay = s[1] or '0', s[2], tonumber(s[3]) or 0, tonumber(s[4]) or 0
local walls_end = tonumber(string.match(s[5] or '', '^%d+ %d+ (%d+)')) or 0
if version ~= known_version then return version end

local set = {}
for a = 6, LAST_FIELD, 2 do set[ARGV[a]] = ARGV[a + 1] end
local block = set.blocked and set.blocked ~= ''

local leases = {}
for a = LAST_FIELD + 1, #ARGV do
  local i = a - LAST_FIELD
  leases[i] = {token = ARGV[a], visit = KEYS[20 + i]}
end
if block and site_token then
  local named = false
  for _, l in ipairs(leases) do named = named or l.token == site_token end
  if not named then return redis.error_reply('OPEN under another token') end
end

try_all()
call('HLEN', NEVER)
call('LLEN', NEVER)
call('ZCARD', NEVER)
call('UNLINK', NEVER)
call('HSET', SITE, 'version', version + 1)
for name, value in pairs(set) do
  if value == '' then
    call('HDEL', SITE, name)
  else
    call('HSET', SITE, name, value)
  end
end
for name, list in pairs(LISTS) do
  if set[name] == '' then
    call('HDEL', list, site)
  elseif set[name] then
    call('HSET', list, site, int(NOW) .. ' ' .. why)
  end
end
if set.blocked or set.cap then call('HSET', META, 'ruled', 1) end

-- The clock goes back only where nothing moved it since: a time that reserve granted stays.
if set.walls and clock <= walls_end then clock = math.min(clock, NOW + 1 + delay) end
if set.walls or block then call('ZREM', WALLED, site) end

-- A blocked site loses its queues and its visits. Its clock keeps the delay, for a
-- fetcher may still have a request open.
if block then
  local queued, open = 0, 0
  for p = 0, 3 do queued = queued + call('LLEN', KEYS[BLOCK + QUEUE + p]) end
  local waiting, recrawls = call('ZCARD', KEYS[BLOCK + RETRIES]), call('ZCARD', KEYS[BLOCK + RECRAWLS])
  for _, l in ipairs(leases) do
    local visit = l.visit
    if call('ZREM', LEASES, l.token .. ' ' .. site) == 1 then
      open = open + call('HLEN', visit)
      call('DEL', visit)
    end
  end
  call('UNLINK', unpack(KEYS, BLOCK + QUEUE, BLOCK + ENTRIES))
  call('HDEL', SITE, 'token')
  if site_token then clock = math.max(clock, NOW + 1 + delay) end
  add_stat('queued', -queued)
  add_stat('waiting', -waiting)
  add_stat('recrawls', -recrawls)
  add_stat('open', -open)
  add_stat('blocked', queued + waiting + open)
  if queued + waiting + open > 0 then call('HSET', SITE, 'dropped', int(NOW) .. ' block') end
end

if clock > 0 then call('HSET', SITE, 'clock', int(clock)) end
expire_site(BLOCK, clock)
place_site(BLOCK, site)
write_stats()
return ''
