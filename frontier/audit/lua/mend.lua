-- mend: repairs the leases and the place of a site. It reads their state anew: what is
-- in order stays.
-- KEYS[1..9]   as in the prelude
-- KEYS[10..17] the block of the site
-- KEYS[18..]   v of each token
-- ARGV[1]      epoch
-- ARGV[2]      site
-- ARGV[3]      1: it was seen in another zset than the ready rule says
-- ARGV[4]      delay, ms, of a site that has none of its own
-- ARGV[5]      lease, ms
-- ARGV[6..]    tokens that lease it, or seem to
-- Reply        {per token a code: r its lease was restored; t the site was released; l
--              the lease had no URL and ended; - in order; URLs dropped because the
--              site is blocked; 1 when the site was placed anew; recrawls whose time or
--              entry was missing: they are due now, or dropped}
-- Cost         O(log sites) per token; lists of a blocked site are freed in the
--              background; O(recrawls) where some lack their time or entry
-- Repeat       places the site again, and else finds nothing to do
local site, misplaced = ARGV[2], ARGV[3] == '1'
local default_delay, lease = tonumber(ARGV[4]), tonumber(ARGV[5])
local BLOCK, FIRST_TOKEN, FIRST_VISIT = 10, 6, 18

local s = call('HMGET', KEYS[BLOCK], 'token', 'clock', 'delay', 'blocked')
local site_token, clock, delay, blocked = s[1], tonumber(s[2]) or 0, tonumber(s[3]) or 0, s[4]
if delay <= 0 then delay = default_delay end

try_all()
for _, name in ipairs {'HLEN', 'HKEYS', 'LLEN', 'ZCARD', 'UNLINK'} do call(name, NEVER) end
call('HEXISTS', NEVER, '')

local results = {}
for i = 1, #ARGV - FIRST_TOKEN + 1 do
  local token, visit = ARGV[FIRST_TOKEN + i - 1], KEYS[FIRST_VISIT + i - 1]
  local member = token .. ' ' .. site
  local open, leased = call('HLEN', visit), call('ZSCORE', LEASES, member)

  results[i] = '-'
  if not leased and open > 0 then
    -- A whole lease: its fetcher may still be at work, and counts on one.
    call('ZADD', LEASES, int(NOW + lease), member)
    results[i] = 'r'
  elseif not leased and site_token == token then
    -- A request may still be open: the delay counts from now.
    free_site(BLOCK, math.max(clock, NOW + 1 + delay))
    site_token, misplaced = false, true
    results[i] = 't'
  elseif leased and site_token ~= token and open == 0 then
    call('ZREM', LEASES, member)
    results[i] = 'l'
  end
end

local dropped = 0
if blocked then
  local queued = 0
  for p = 0, 3 do queued = queued + call('LLEN', KEYS[BLOCK + QUEUE + p]) end
  local waiting, recrawls = call('ZCARD', KEYS[BLOCK + RETRIES]), call('ZCARD', KEYS[BLOCK + RECRAWLS])
  call('UNLINK', unpack(KEYS, BLOCK + QUEUE, BLOCK + ENTRIES))
  add_stat('queued', -queued)
  add_stat('recrawls', -recrawls)
  add_stat('waiting', -waiting)
  add_stat('blocked', queued + waiting)
  dropped = queued + waiting + recrawls
end

-- match_recrawls makes entries without a time due, and removes times without an entry.
local function match_recrawls()
  local changed = 0
  for _, id in ipairs(call('HKEYS', KEYS[BLOCK + ENTRIES])) do
    if call('ZADD', KEYS[BLOCK + RECRAWLS], 'NX', int(NOW), id) == 1 then
      changed = changed + 1
      add_stat('recrawls', 1)
    end
  end
  for _, id in ipairs(call('ZRANGE', KEYS[BLOCK + RECRAWLS], 0, -1)) do
    if call('HEXISTS', KEYS[BLOCK + ENTRIES], id) == 0 then
      call('ZREM', KEYS[BLOCK + RECRAWLS], id)
      changed = changed + 1
      add_stat('recrawls', -1)
    end
  end
  return changed
end
local rematched = call('ZCARD', KEYS[BLOCK + RECRAWLS]) ~= call('HLEN', KEYS[BLOCK + ENTRIES]) and match_recrawls() or 0

misplaced = misplaced or dropped > 0 or rematched > 0
if misplaced then place_site(BLOCK, site) end
write_stats()
return {table.concat(results), dropped, misplaced and 1 or 0, rematched}
