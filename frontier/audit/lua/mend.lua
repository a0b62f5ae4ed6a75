-- mend: puts a site in order, whatever became of its loans and its place. It
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
--              lent by it and is free; l the lease lent nothing and ended; - in order; URLs dropped because the site is
--              blocked; 1 when it was placed anew}
-- Cost         O(log sites) per token; lists of a blocked site go in the background
-- Repeat       places the site again, and else finds nothing to do
local B, site, wrong = 10, ARGV[2], ARGV[3] == '1'
local s = C('HMGET', KEYS[B], 'token', 'clock', 'delay', 'blocked')
local own, letters = s[1], {}
for i = 6, #ARGV do
  local token, v = ARGV[i], KEYS[10 + i]
  local member, open = token .. ' ' .. site, C('HLEN', v)
  local leased = C('ZSCORE', KEYS[3], member)
  letters[i - 5] = '-'
  if not leased and open > 0 then
    -- A whole lease: who holds it may be at work still, and believes as much.
    C('ZADD', KEYS[3], int(NOW + ARGV[5]), member)
    letters[i - 5] = 'r'
  elseif not leased and own == token then
    -- Somebody may be at the site still: the delay counts from now.
    local delay = tonumber(s[3]) or 0
    if delay <= 0 then delay = tonumber(ARGV[4]) end
    local clock = math.max(tonumber(s[2]) or 0, NOW + 1 + delay)
    C('HDEL', KEYS[B], 'token')
    C('HSET', KEYS[B], 'clock', int(clock))
    expire(B, clock)
    own, wrong, letters[i - 5] = false, true, 't'
  elseif leased and own ~= token and open == 0 then
    C('ZREM', KEYS[3], member)
    letters[i - 5] = 'l'
  end
end

local queued, waiting = 0, 0
if s[4] then
  for p = 0, 3 do queued = queued + C('LLEN', KEYS[B + 1 + p]) end
  waiting = C('ZCARD', KEYS[B + 5])
  C('UNLINK', unpack(KEYS, B + 1, B + 5))
  tally('queued', -queued) tally('waiting', -waiting) tally('blocked', queued + waiting)
  wrong = wrong or queued + waiting > 0
end
if wrong then place(B, site) end
count()
return {table.concat(letters), queued + waiting, wrong and 1 or 0}
