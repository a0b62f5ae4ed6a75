-- look: reads the state of sites, and how many URLs are open in visits.
-- KEYS[1..9]  as in the prelude
-- KEYS[10,11] the lists of paused and of blocked sites
-- KEYS[12..]  per site 8: its block; then v of visits
-- ARGV[1]     epoch
-- ARGV[2..]   the sites
-- Reply       per site 23: its token, or ''; ms until its clock, or ''; delay ms, why,
--             failures, cap, n, override, each or ''; its zset: ready 0 to 3, paused 4,
--             none -1; ms until it is due there, or until its lease ends, or ''; the
--             lengths of its queues 0 to 3, its retries and its recrawls; since when
--             and why it is paused, and blocked, or ''; its totals of counters.lua, or
--             ''; its credentials, or ''; when URLs of it were last dropped and by
--             which verb, or ''; the first byte of its cookies, or ''; its row of walls: how
--             many, since when, ms until its back-off ends, the vendor, or ''. Then per visit
--             its open URLs
-- Cost        O(sites * log sites of the shard + visits)
-- Repeat      reads only
local PAUSES, BLOCKS = KEYS[10], KEYS[11]
local sites = #ARGV - 1
local reply = {}
local function add(v) reply[#reply + 1] = v or '' end

-- place_of is the zset that has a site, from READY, and its score there.
local function place_of(site)
  for z = READY, PAUSED do
    local score = call('ZSCORE', KEYS[z], site)
    if score then return z, tonumber(score) end
  end
end

local block = 12
for i = 1, sites do
  local site = ARGV[1 + i]
  local s = call('HMGET', KEYS[block], 'token', 'clock', 'delay', 'why', 'failures', 'cap', 'n', 'override', 'totals', 'auth', 'dropped', 'cookies', 'walls')
  local token, clock = s[1], s[2]
  add(token)
  add(clock and int(clock - NOW))
  for f = 3, 8 do add(s[f]) end

  local zset, due = place_of(site)
  if token then due = tonumber(call('ZSCORE', LEASES, token .. ' ' .. site)) end
  add(zset and zset - READY or -1)
  add(due and int(due - NOW))

  for p = 0, 3 do add(call('LLEN', KEYS[block + QUEUE + p])) end
  for w = RETRIES, RECRAWLS do add(call('ZCARD', KEYS[block + w])) end
  add(call('HGET', PAUSES, site))
  add(call('HGET', BLOCKS, site))
  add(s[9])
  add(s[10])
  add(s[11])
  add(s[12] and string.sub(s[12], 1, 1))
  add(s[13] and string.gsub(s[13], '^(%d+ %d+) (%d+)', function(row, ends) return row .. ' ' .. int(ends - NOW) end))
  block = block + 8
end
for v = block, #KEYS do add(call('HLEN', KEYS[v])) end
return reply
