-- reap: ends expired leases. Their open URLs return to the front of their queues, lost
-- once more; a URL that was lost for the third time is dead.
-- KEYS[1..9]  as in the prelude
-- KEYS[10]    dead:lost
-- KEYS[11..]  per lease 9: the block of its site, then v of its token
-- ARGV[1]     epoch
-- ARGV[2]     lease, ms
-- ARGV[3]     dead letters that a list may have
-- ARGV[4..]   per lease 5: token, site, deadline seen, ms, delay, ms, if the site
--             has none of its own, and what comes before the entry in a dead letter
-- Reply       per lease 1 reaped, 0 refused: extended, gone, not expired, or
--             fetchers may have been cut off (as in tick)
-- Cost        O(URLs of the visits + log sites) per lease
-- Repeat      refused, for the lease is gone
local lease, most = tonumber(ARGV[2]), tonumber(ARGV[3])
local DEAD = KEYS[10]
local cut_off = NOW < quiet or NOW - tick > lease / 3

-- requeue_open returns the open entries of v to their queues, the last first, unless
-- the site is blocked.
local function requeue_open(block, element_head, blocked)
  local fields, open = call('HGETALL', KEYS[block + VISIT]), {}
  for i = 1, #fields, 2 do
    open[#open + 1] = {index = tonumber(fields[i]), entry = fields[i + 1]}
  end
  table.sort(open, function(x, y) return x.index > y.index end)

  for _, o in ipairs(open) do
    local lost = losses(o.entry) + 1
    local entry = string.sub(o.entry, 1, 2) .. lost .. string.sub(o.entry, 4)
    if blocked then
      add_stat('blocked', 1)
    elseif lost < 3 then
      call('LPUSH', KEYS[block + QUEUE + class(entry)], entry)
      add_stat('queued', 1)
    else
      dead_letter(DEAD, element_head .. entry, most)
    end
  end

  if open[1] then call('DEL', KEYS[block + VISIT]) end
  add_stat('open', -#open)
  add_stat('lost', #open)
end

try_all()
call('HGETALL', NEVER)
local reply = {}
local block = 11
for a = 4, #ARGV, 5 do
  local token, site, seen = ARGV[a], ARGV[a + 1], tonumber(ARGV[a + 2])
  local default_delay, element_head = tonumber(ARGV[a + 3]), ARGV[a + 4]
  local member = token .. ' ' .. site
  local deadline = tonumber(call('ZSCORE', LEASES, member) or -1)

  if cut_off or deadline ~= seen or deadline >= NOW then
    reply[#reply + 1] = 0
  else
    local s = call('HMGET', KEYS[block], 'token', 'clock', 'delay', 'blocked')
    local site_token, clock, delay, blocked = s[1], tonumber(s[2]) or 0, tonumber(s[3]) or 0, s[4]
    if delay <= 0 then delay = default_delay end

    requeue_open(block, element_head, blocked)
    call('ZREM', LEASES, member)
    local mine = site_token == token
    if mine then free_site(block, math.max(clock, NOW + 1 + delay)) end
    place_site(block, site, mine)
    reply[#reply + 1] = 1
  end
  block = block + 9
end
write_stats()
return reply
