-- tick: extends leases, names due sites with tickets, and expired leases.
-- KEYS[1..9]  as in the prelude
-- ARGV[1]     epoch
-- ARGV[2]     lease, ms: how long a lease lives from now
-- ARGV[3]     claim, ms: how long a ticket keeps its site from other callers
-- ARGV[4]     due sites wanted at most
-- ARGV[5]     expired leases wanted at most
-- ARGV[6..]   leases to extend, 'token site' each
-- Reply       {places in ARGV[6..] of leases that are gone, counted from 1;
--             {site, class, ticket, ...}; {'token site', deadline ms, ...};
--             ms until a site is due, -1 = none waits; rev; paused, 1 or 0;
--             ms that time stands still, for the clock was set back}
-- Cost        O((leases + wanted) log(sites + leases))
-- Repeat      extends again, and claims other sites: those of the first call
--             are due again when their claim has passed
local lease, claim, want = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local paused = META[3] and 1 or 0

-- After a gap fetchers may have been cut off: they get one lease to come back.
local quiet = tonumber(META[5]) or 0
if NOW - TICK > lease / 3 then quiet = NOW + lease end
C('HSET', KEYS[1], 'tick', int(NOW), 'quiet', int(quiet))

local gone, expired = {}, {}
if ARGV[6] then
  local keep = {}
  local held = C('ZMSCORE', KEYS[3], unpack(ARGV, 6))
  for i = 1, #ARGV - 5 do
    if held[i] then
      keep[#keep + 1] = int(NOW + lease)
      keep[#keep + 1] = ARGV[5 + i]
    else
      gone[#gone + 1] = i
    end
  end
  if keep[1] then C('ZADD', KEYS[3], unpack(keep)) end
end
if NOW >= quiet and tonumber(ARGV[5]) > 0 then
  expired = C('ZRANGE', KEYS[3], '-inf', '(' .. int(NOW), 'BYSCORE', 'LIMIT', 0, ARGV[5], 'WITHSCORES')
end

-- Half of the sites come from the best class, the rest by time, so none starves;
-- the odd one is by turns of the one half and the other.
local due, ticket = {}, int(NOW + claim) .. '.5'
if want > 0 and paused == 0 then
  local lists, at, claims, taken = {}, {}, {}, 0
  for z = 4, 7 do
    lists[z] = C('ZRANGE', KEYS[z], '-inf', int(NOW), 'BYSCORE', 'LIMIT', 0, want, 'WITHSCORES')
    at[z], claims[z] = 1, {}
  end
  local function take(z)
    local site, l = lists[z][at[z]], claims[z]
    l[#l + 1] = ticket
    l[#l + 1] = site
    due[taken * 3 + 1], due[taken * 3 + 2], due[taken * 3 + 3] = site, z - 4, ticket
    at[z], taken = at[z] + 2, taken + 1
  end
  local half = math.floor((want + (tonumber(META[7]) or 0) % 2) / 2)
  for z = 4, 7 do
    if lists[z][1] then
      while taken < half and lists[z][at[z]] do take(z) end
      break
    end
  end
  while taken < want do
    local best, score
    for z = 4, 7 do
      local s = lists[z][at[z]] and tonumber(lists[z][at[z] + 1])
      if s and (not score or s < score) then best, score = z, s end
    end
    if not best then break end
    take(best)
  end
  for z = 4, 7 do
    if claims[z][1] then C('ZADD', KEYS[z], unpack(claims[z])) end
  end
  if taken > 0 then C('HINCRBY', KEYS[1], 'turn', 1) end
end

local next = -1
for z = 4, 7 do
  local first = C('ZRANGE', KEYS[z], 0, 0, 'WITHSCORES')
  local wait = first[1] and math.max(0, math.ceil(tonumber(first[2]) - NOW))
  if wait and (next < 0 or wait < next) then next = wait end
end
return {gone, due, expired, next, META[2] or '0', paused, math.max(0, TICK - CLOCK)}
