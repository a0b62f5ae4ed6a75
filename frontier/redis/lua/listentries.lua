-- listentries: reads entries of a queue, of the retries or of a visit.
-- KEYS[1..9]  as in the prelude
-- KEYS[10]    q, w or v of a site
-- ARGV[1]     epoch
-- ARGV[2]     queue, retries or visit, as KEYS[10] is
-- ARGV[3..4]  the first and the last index, as of LRANGE; a visit is read whole
-- Reply       per entry 2: the entry; ms until it may be tried, 0 = not a retry
-- Cost        O(log retries + entries), and the way to the first in a long queue
-- Repeat      reads only
local kind, first, last = ARGV[2], ARGV[3], ARGV[4]
local list = KEYS[10]
local reply = {}
local function add(entry, due)
  reply[#reply + 1] = entry
  reply[#reply + 1] = due and int(math.max(0, due - NOW)) or 0
end

if kind == 'queue' then
  for _, entry in ipairs(call('LRANGE', list, first, last)) do add(entry) end
elseif kind == 'retries' then
  local retries = call('ZRANGE', list, first, last, 'WITHSCORES')
  for i = 1, #retries, 2 do add(retries[i], tonumber(retries[i + 1])) end
else
  local open = call('HGETALL', list)
  for i = 2, #open, 2 do add(open[i]) end
end
return reply
