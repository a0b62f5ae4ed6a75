-- look: reads what is kept of sites, and how much is open of visits.
-- KEYS[1..9]  as in the prelude
-- KEYS[10,11] the lists of paused and of blocked sites
-- KEYS[12..]  per site 8: its block; then v of visits
-- ARGV[1]     epoch
-- ARGV[2..]   the sites
-- Reply       per site 21: its token, or ''; ms until its clock, or ''; delay ms, why,
--             failures, cap, n, override, each or ''; where it stands: ready 0 to 3,
--             held 4, nowhere -1; ms until it is due there, or until its lease ends,
--             or ''; entries of its queues 0 to 3, of its retries, and of what is to be
--             fetched again; since when and why it is paused, and blocked, or '';
--             what sums.lua keeps of it, or ''; its credentials, or '';
--             when URLs of it were last dropped and by which verb, or ''. Then per visit
--             what is open
-- Cost        O(sites * log sites of the shard + visits)
-- Repeat      reads only
local PAUSED, BLOCKED = KEYS[10], KEYS[11]
local sites = #ARGV - 1
local reply = {}
local function add(v) reply[#reply + 1] = v or '' end

-- place_of is the zset that a site stands in, from READY, and its score there.
local function place_of(site)
  for z = READY, HELD do
    local score = call('ZSCORE', KEYS[z], site)
    if score then return z, tonumber(score) end
  end
end

local block = 12
for i = 1, sites do
  local site = ARGV[1 + i]
  local s = call('HMGET', KEYS[block], 'token', 'clock', 'delay', 'why', 'failures', 'cap', 'n', 'override', 'got', 'auth', 'dropped')
  local token, clock = s[1], s[2]
  add(token)
  add(clock and int(clock - NOW))
  for f = 3, 8 do add(s[f]) end

  local zset, due = place_of(site)
  if token then due = tonumber(call('ZSCORE', LEASES, token .. ' ' .. site)) end
  add(zset and zset - READY or -1)
  add(due and int(due - NOW))

  for p = 0, 3 do add(call('LLEN', KEYS[block + QUEUE + p])) end
  for w = RETRIES, AGAIN do add(call('ZCARD', KEYS[block + w])) end
  add(call('HGET', PAUSED, site))
  add(call('HGET', BLOCKED, site))
  add(s[9])
  add(s[10])
  add(s[11])
  block = block + 8
end
for v = block, #KEYS do add(call('HLEN', KEYS[v])) end
return reply
