-- mend: puts a site in order, whatever became of its leases and its place. It
-- judges by itself: what is in order stays as it is.
-- KEYS[1..9]   as in the prelude
-- KEYS[10..15] the block of the site
-- KEYS[16..]   v of each token
-- ARGV[1]      epoch
-- ARGV[2]      site
-- ARGV[3]      1: it was seen where the ready rule does not want it
-- ARGV[4]      delay, ms, of a site that has none of its own
-- ARGV[5]      lease, ms
-- ARGV[6..]    tokens that it is lent under, or seems to be
-- Reply        {per token a letter: r its lease was given back; t the site was not
--              lent by it and is free; l the lease lent nothing and ended; - in
--              order; URLs dropped because the site is blocked; 1 when it was
--              placed anew}
-- Cost         O(log sites) per token; lists of a blocked site go in the background
-- Repeat       places the site again, and else finds nothing to do
local site, misplaced = ARGV[2], ARGV[3] == '1'
local default_delay, lease = tonumber(ARGV[4]), tonumber(ARGV[5])
local BLOCK, FIRST_TOKEN, FIRST_VISIT = 10, 6, 16

local s = call('HMGET', KEYS[BLOCK], 'token', 'clock', 'delay', 'blocked')
local lent, clock, delay, blocked = s[1], tonumber(s[2]) or 0, tonumber(s[3]) or 0, s[4]
if delay <= 0 then delay = default_delay end

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
  local waiting = call('ZCARD', KEYS[BLOCK + RETRIES])
  call('UNLINK', unpack(KEYS, BLOCK + QUEUE, BLOCK + RETRIES))
  tally('queued', -queued)
  tally('waiting', -waiting)
  tally('blocked', queued + waiting)
  dropped = queued + waiting
end

misplaced = misplaced or dropped > 0
if misplaced then place(BLOCK, site) end
count()
return {table.concat(letters), dropped, misplaced and 1 or 0}
