-- reap: takes expired leases back. What was open returns to the front of its
-- queues, marked lost once more; what was lost for the third time is dead.
-- KEYS[1..9]  as in the prelude
-- KEYS[10]    dead:lost
-- KEYS[11..]  per lease 7: the block of its site, then v of its token
-- ARGV[1]     epoch
-- ARGV[2]     lease, ms
-- ARGV[3]     letters that a dead list may hold
-- ARGV[4..]   per lease 5: token, site, deadline seen, ms, delay, ms, if the site
--             has none of its own, and what comes before the entry in a letter
-- Reply       per lease 1 reaped, 0 refused: extended, gone, not expired, or
--             fetchers may have been cut off (as in tick)
-- Cost        O(URLs of the visits + log sites) per lease
-- Repeat      refused, for the lease is gone
local lease, most = tonumber(ARGV[2]), tonumber(ARGV[3])
local quiet = NOW < (tonumber(META[5]) or 0) or NOW - TICK > lease / 3

-- back returns the open entries of v to their queues, the last first, unless
-- the site is blocked.
local function back(b, before, blocked)
  local all, open = C('HGETALL', KEYS[b + 6]), {}
  for i = 1, #all, 2 do open[#open + 1] = {tonumber(all[i]), all[i + 1]} end
  table.sort(open, function(x, y) return x[1] > y[1] end)
  for _, x in ipairs(open) do
    local entry, lost = x[2], string.byte(x[2], 3) - 48 + 1
    entry = string.sub(entry, 1, 2) .. lost .. string.sub(entry, 4)
    if blocked then
      tally('blocked', 1)
    elseif lost < 3 then
      C('LPUSH', KEYS[b + 1 + class(entry)], entry)
      tally('queued', 1)
    else
      bury(KEYS[10], before .. entry, most)
    end
  end
  if open[1] then C('DEL', KEYS[b + 6]) end
  tally('open', -#open) tally('lost', #open)
end

local reply, b = {}, 11
for a = 4, #ARGV, 5 do
  local token, site, seen = ARGV[a], ARGV[a + 1], tonumber(ARGV[a + 2])
  local member = token .. ' ' .. site
  local deadline = tonumber(C('ZSCORE', KEYS[3], member) or -1)
  if quiet or deadline ~= seen or deadline >= NOW then
    reply[#reply + 1] = 0
  else
    local s = C('HMGET', KEYS[b], 'token', 'clock', 'delay', 'blocked')
    back(b, ARGV[a + 4], s[4])
    C('ZREM', KEYS[3], member)
    local mine = s[1] == token
    if mine then
      local delay = tonumber(s[3]) or 0
      if delay <= 0 then delay = tonumber(ARGV[a + 3]) end
      local clock = math.max(tonumber(s[2]) or 0, NOW + 1 + delay)
      C('HDEL', KEYS[b], 'token')
      C('HSET', KEYS[b], 'clock', int(clock))
      expire(b, clock)
    end
    place(b, site, mine)
    reply[#reply + 1] = 1
  end
  b = b + 7
end
count()
return reply
