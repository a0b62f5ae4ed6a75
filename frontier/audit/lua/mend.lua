-- mend: puts a site in order, whatever became of its leases and its place. It
-- judges by itself: what is in order stays as it is.
-- KEYS[1..9]   as in the prelude
-- KEYS[10..17] the block of the site
-- KEYS[18..]   v of each token
-- ARGV[1]      epoch
-- ARGV[2]      site
-- ARGV[3]      1: it was seen where the ready rule does not want it
-- ARGV[4]      delay, ms, of a site that has none of its own
-- ARGV[5]      lease, ms
-- ARGV[6..]    tokens that it is lent under, or seems to be
-- Reply        {per token a letter: r its lease was given back; t the site was not
--              lent by it and is free; l the lease lent nothing and ended; - in
--              order; URLs dropped because the site is blocked; 1 when it was
--              placed anew; URLs to be fetched again whose time or entry was missing:
--              they are due, or no more}
-- Cost         O(log sites) per token; lists of a blocked site go in the background;
--              O(URLs to be fetched again) where some lack their time or entry
-- Repeat       places the site again, and else finds nothing to do
local site, misplaced = ARGV[2], ARGV[3] == '1'
local default_delay, lease = tonumber(ARGV[4]), tonumber(ARGV[5])
local BLOCK, FIRST_TOKEN, FIRST_VISIT = 10, 6, 18

local s = call('HMGET', KEYS[BLOCK], 'token', 'clock', 'delay', 'blocked')
local lent, clock, delay, blocked = s[1], tonumber(s[2]) or 0, tonumber(s[3]) or 0, s[4]
if delay <= 0 then delay = default_delay end

try_all()
for _, name in ipairs {'HLEN', 'HKEYS', 'LLEN', 'ZCARD', 'UNLINK'} do call(name, NEVER) end
call('HEXISTS', NEVER, '')

local letters = {}
for i = 1, #ARGV - FIRST_TOKEN + 1 do
  local token, visit = ARGV[FIRST_TOKEN + i - 1], KEYS[FIRST_VISIT + i - 1]
  local member = token .. ' ' .. site
  local open, leased = call('HLEN', visit), call('ZSCORE', LEASES, member)

  letters[i] = '-'
  if not leased and open > 0 then
    -- A whole lease: who holds it may be at work still, and believes as much.
    call('ZADD', LEASES, int(NOW + lease), member)
    letters[i] = 'r'
  elseif not leased and lent == token then
    -- Somebody may be at the site still: the delay counts from now.
    free(BLOCK, math.max(clock, NOW + 1 + delay))
    lent, misplaced = false, true
    letters[i] = 't'
  elseif leased and lent ~= token and open == 0 then
    call('ZREM', LEASES, member)
    letters[i] = 'l'
  end
end

local dropped = 0
if blocked then
  local queued = 0
  for p = 0, 3 do queued = queued + call('LLEN', KEYS[BLOCK + QUEUE + p]) end
  local waiting, again = call('ZCARD', KEYS[BLOCK + RETRIES]), call('ZCARD', KEYS[BLOCK + AGAIN])
  call('UNLINK', unpack(KEYS, BLOCK + QUEUE, BLOCK + KEPT))
  tally('queued', -queued)
  tally('again', -again)
  tally('waiting', -waiting)
  tally('blocked', queued + waiting)
  dropped = queued + waiting + again
end

-- matched gives an entry that has no time a time, and takes a time off that has
-- no entry.
local function matched()
  local changed = 0
  for _, id in ipairs(call('HKEYS', KEYS[BLOCK + KEPT])) do
    if call('ZADD', KEYS[BLOCK + AGAIN], 'NX', int(NOW), id) == 1 then
      changed = changed + 1
      tally('again', 1)
    end
  end
  for _, id in ipairs(call('ZRANGE', KEYS[BLOCK + AGAIN], 0, -1)) do
    if call('HEXISTS', KEYS[BLOCK + KEPT], id) == 0 then
      call('ZREM', KEYS[BLOCK + AGAIN], id)
      changed = changed + 1
      tally('again', -1)
    end
  end
  return changed
end
local rematched = call('ZCARD', KEYS[BLOCK + AGAIN]) ~= call('HLEN', KEYS[BLOCK + KEPT]) and matched() or 0

misplaced = misplaced or dropped > 0 or rematched > 0
if misplaced then place(BLOCK, site) end
count()
return {table.concat(letters), dropped, misplaced and 1 or 0, rematched}
