-- tick: extends leases, names due sites with tickets, and expired leases. Where the
-- server's clock was set, the time of the shard goes on from where it was.
-- KEYS[1..9]  as in the prelude
-- ARGV[1]     epoch
-- ARGV[2]     lease, ms: how long a lease lives from now
-- ARGV[3]     claim, ms: how long a ticket keeps its site from other callers
-- ARGV[4]     due sites wanted at most
-- ARGV[5]     expired leases wanted at most
-- ARGV[6]     ms that the clock may lag behind the time; beyond, it is moved on; 0 = never
-- ARGV[7..8]  the time in the reply to the caller's last tick, 0 = none; ms elapsed
--             since, by the caller's clock
-- ARGV[9]     ms that a site must have been due for to be named
-- ARGV[10..]  leases to extend, 'token site' each
-- Reply       {places in ARGV[10..] of leases that are gone, counted from 1;
--             {site, class, ticket, ...}; {'token site', deadline ms, ...};
--             ms until a site is due (and has been for ARGV[9]), -1 = none waits; rev; paused, 1 or 0;
--             ms that the clock lags behind the time, for it was set back; ms that the
--             clock jumped forward; the time}
-- Cost        O((leases + wanted) log(sites + leases))
-- Repeat      extends again, and claims other sites: those of the first call
--             are due again when their claim has passed
local lease, claim = tonumber(ARGV[2]), tonumber(ARGV[3])
local want, want_expired = tonumber(ARGV[4]), tonumber(ARGV[5])
local max_lag, last_now, elapsed = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local patience = tonumber(ARGV[9])
local FIRST_LEASE = 10

-- Rights that would be missed only after the first write.
call('ZADD', NEVER, 'XX', 0, '')
call('ZMSCORE', NEVER, '')
call('ZRANGE', NEVER, 0, 0)

-- No more time has elapsed since anyone's last tick than since the caller's. Clocks may
-- differ by a hundredth.
local clock_jump = 0
if max_lag > 0 and last_now > 0 then
  local step = CLOCK - math.max(tick, last_now + elapsed)
  if step > max_lag + elapsed / 100 then
    clock_jump = step
    ahead = ahead - step
    CLOCK = CLOCK - step
    NOW = math.max(CLOCK, tick)
    call('HSET', META, 'ahead', int(ahead))

    -- Leases that began or were extended meanwhile end no later than others.
    for _, member in ipairs(call('ZRANGE', LEASES, '(' .. int(NOW + lease), '+inf', 'BYSCORE', 'LIMIT', 0, 1000)) do
      call('ZADD', LEASES, int(NOW + lease), member)
    end
  end
end

local lag = math.max(0, tick - CLOCK)
if max_lag > 0 and lag >= max_lag then
  call('HSET', META, 'ahead', int(ahead + lag))
end

-- After a gap fetchers may have been cut off: they get one lease to come back.
if NOW - tick > lease / 3 then quiet = NOW + lease end
call('HSET', META, 'tick', int(NOW), 'quiet', int(quiet))

-- Leases.
local gone = {}
if ARGV[FIRST_LEASE] then
  local deadline = int(NOW + lease)
  local keep = {}
  local scores = call('ZMSCORE', LEASES, unpack(ARGV, FIRST_LEASE))
  for i = 1, #ARGV - FIRST_LEASE + 1 do
    if scores[i] then
      keep[#keep + 1] = deadline
      keep[#keep + 1] = ARGV[FIRST_LEASE + i - 1]
    else
      gone[#gone + 1] = i
    end
  end
  if keep[1] then call('ZADD', LEASES, unpack(keep)) end
end

local expired = {}
if want_expired > 0 and NOW >= quiet then
  expired = call('ZRANGE', LEASES, '-inf', '(' .. int(NOW), 'BYSCORE', 'LIMIT', 0, want_expired, 'WITHSCORES')
end

-- Due sites. Half come from the best class that has any, the rest by time, so that none
-- starves. Of an odd number the odd one is in either half by turns.
local due = {}
if want > 0 and not paused then
  local ticket = int(NOW + claim) .. '.5'
  local ready, at, claims = {}, {}, {} -- by zset: {site, score, ...}, the next of these, what is taken
  for z = READY, READY + 3 do
    ready[z] = call('ZRANGE', KEYS[z], '-inf', int(NOW - patience), 'BYSCORE', 'LIMIT', 0, want, 'WITHSCORES')
    at[z] = 1
    claims[z] = {}
  end

  local taken = 0
  local function claim_site(z)
    local site = ready[z][at[z]]
    at[z] = at[z] + 2
    table.insert(claims[z], ticket)
    table.insert(claims[z], site)
    table.insert(due, site)
    table.insert(due, z - READY)
    table.insert(due, ticket)
    taken = taken + 1
  end

  local half = math.floor((want + round % 2) / 2)
  for z = READY, READY + 3 do
    if ready[z][1] then
      while taken < half and ready[z][at[z]] do claim_site(z) end
      break
    end
  end

  while taken < want do
    local earliest, score
    for z = READY, READY + 3 do
      local s = tonumber(ready[z][at[z] + 1])
      if s and (not score or s < score) then
        earliest, score = z, s
      end
    end
    if not earliest then break end
    claim_site(earliest)
  end

  for z = READY, READY + 3 do
    if claims[z][1] then call('ZADD', KEYS[z], unpack(claims[z])) end
  end
  if taken > 0 then call('HSET', META, 'round', int(round + 1)) end
end

-- When the next one is due.
local next_due = -1
for z = READY, READY + 3 do
  local first = call('ZRANGE', KEYS[z], 0, 0, 'WITHSCORES')
  if first[1] then
    local wait = math.max(0, math.ceil(tonumber(first[2]) - NOW + patience))
    if next_due < 0 or wait < next_due then next_due = wait end
  end
end

return {gone, due, expired, next_due, rev or '0', paused and 1 or 0, lag, clock_jump, NOW}
