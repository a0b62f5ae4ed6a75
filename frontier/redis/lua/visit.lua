-- visit: leases sites whose tickets are good, with some of their URLs each.
-- KEYS[1..9]    as in the prelude
-- KEYS[10..]    per site 9: its block of the prelude, then v of the token
-- ARGV[1]       epoch
-- ARGV[2]       lease, ms
-- ARGV[3]       URLs that a visit may have
-- ARGV[4]       the same, where the site has no delay
-- ARGV[5]       span, ms, that a visit may last at its site's delay, 0 = any
-- ARGV[6]       delay, ms, of a site that has none of its own
-- ARGV[7]       1: no URL that was lost twice is leased, 0: one at most; sites of others
--               are due in a second and their tickets void
-- ARGV[8]       per cent of a visit that is for recrawls that are due while other URLs
--               wait
-- ARGV[9..]     per site 4: site, token, class, ticket
-- Reply         per site '' when nothing was leased, else {delay ms, '' = it has no clock
--               either, why, failures in a row, and after a space walls if any, override, credentials, index, entry, index,
--               entry, ...}, and at the end its cookies, if it has any
-- Cost          O(URLs + log sites) per site
-- Repeat        a token that has its lease gets its open URLs; a ticket is good once,
--               for the lease takes its site out of the zset
local lease, most, most_undelayed = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local span, default_delay = tonumber(ARGV[5]), tonumber(ARGV[6])
local safe, share = ARGV[7] == '1', tonumber(ARGV[8]) / 100

-- last_chance: the entry dies if its fetcher is lost once more.
local function last_chance(entry) return entry and losses(entry) >= 2 end

-- heads_last_chance: such an entry is the first of one of the site's queues. Those
-- better than p are empty.
local function heads_last_chance(block, p)
  for worse = p, 3 do
    if last_chance(call('LINDEX', KEYS[block + QUEUE + worse], 0)) then return true end
  end
  return false
end

-- Scores of the tickets' sites, one call a class.
local scores, leased_of = {}, {} -- by class: scores by site; sites that are leased now
for p = 0, 3 do
  local sites = {}
  for a = 9, #ARGV, 4 do
    if tonumber(ARGV[a + 2]) == p then sites[#sites + 1] = ARGV[a] end
  end
  scores[p], leased_of[p] = {}, {}
  for i, score in ipairs(sites[1] and call('ZMSCORE', KEYS[READY + p], unpack(sites)) or {}) do scores[p][sites[i]] = score end
end

try_all()
call('HGETALL', NEVER)
call('ZCOUNT', NEVER, 0, 0)
call('LINDEX', NEVER, 0)
call('LPOP', NEVER)
local reply, leases = {}, {}
local deadline = int(NOW + lease)
local block = 10
for a = 9, #ARGV, 4 do
  local site, token = ARGV[a], ARGV[a + 1]
  local p, ticket = tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3])
  local member = token .. ' ' .. site
  local s = call('HMGET', KEYS[block], 'clock', 'token', 'delay', 'why', 'failures', 'override', 'round', 'paused', 'version', 'cookies', 'auth', 'walls')
  local clock, leased_by, delay, why, failures = s[1], s[2], s[3], s[4], s[5]
  local override, rounds, is_paused, version, cookies, auth, walls = s[6], tonumber(s[7]) or 0, s[8], s[9], s[10], s[11], s[12]

  local open -- {index, entry, ...}
  if leased_by or is_paused or (tonumber(clock) or 0) > NOW or tonumber(scores[p][site] or -1) ~= ticket then
    if call('ZSCORE', LEASES, member) then open = call('HGETALL', KEYS[block + VISIT]) end -- a repeat
  else
    local between = tonumber(delay) or 0
    if between <= 0 then between = default_delay end
    local k = most
    if between <= 0 then
      k = most_undelayed
    elseif span > 0 then
      k = math.max(1, math.min(most, math.floor(span / between)))
    end

    local taken, spared = {}, false
    if call('EXISTS', unpack(KEYS, block + QUEUE, block + RECRAWLS)) == 1 then take_queued(block, p, k, taken) end -- nothing else of most sites waits
    local queued = #taken
    if queued == 0 then
      spared = safe and heads_last_chance(block, p)
      if not spared then taken, queued = take_waiting(block, p, k, rounds, share) end
    elseif safe and last_chance(taken[1]) then
      spared = true
      call('LPUSH', KEYS[block + QUEUE + p], taken[1])
    end

    if spared then
      call('ZADD', KEYS[READY + p], int(NOW + 1000), site)
    elseif taken[1] then
      open = {}
      for i, entry in ipairs(taken) do
        open[2 * i - 1] = int(i)
        open[2 * i] = entry
      end
      call('HSET', KEYS[block + VISIT], unpack(open))
      call('HSET', KEYS[block], 'token', token, 'round', int((rounds + 1) % 8))
      if clock or version or auth then call('PERSIST', KEYS[block]) end
      leases[#leases + 1] = deadline
      leases[#leases + 1] = member
      table.insert(leased_of[p], site)
      add_stat('queued', -queued)
      add_stat('open', #taken)
      add_stat('visits', 1) -- shows a visit that changed nothing else
    else
      place_site(block, site)
    end
  end

  if open then
    safe = safe or last_chance(open[2])
    if cookies then open[#open + 1] = cookies end
    if walls then failures = (failures or '0') .. string.match(' ' .. walls, '^ %d+') end
    reply[#reply + 1] = {delay or clock and '0' or '', why or '', failures or '', override or '', auth or '', unpack(open)}
  else
    reply[#reply + 1] = ''
  end
  block = block + 9
end
if leases[1] then call('ZADD', LEASES, unpack(leases)) end
for p = 0, 3 do
  if leased_of[p][1] then call('ZREM', KEYS[READY + p], unpack(leased_of[p])) end
end
write_stats()
return reply
