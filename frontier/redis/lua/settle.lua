-- settle: applies outcomes of visits by index, and releases sites.
-- KEYS[1..9]   as in the prelude
-- KEYS[10..14] as in counters
-- KEYS[15..]   the dead lists of the causes, then per settlement 9: the block of
--              its site, then v of its token; last, where one has walls, walled
-- ARGV[1]      epoch
-- ARGV[2]      how many causes
-- ARGV[3]      dead letters that a list may have
-- ARGV[4]      recrawls that a site may have
-- ARGV[5..]    how many counters the call changes, and per counter its name and what
--              all settlements add to it
-- ARGV[+]      per settlement a message (MessagePack): its token; its site; indexes of
--              its outcomes, each once; the outcomes; the release of its site, nil = the
--              lease goes on: {ms until its next request, delay ms, why, failures, ms
--              that it is kept for the caller, false = none}; its
--              cookies, nil = they stay; then as in counters; then, where it has some,
--              its walls: {in a row, the vendor of the last, ms of the back-off, nil = none
--              yet}. An outcome is done or
--              requeue; or {retry, ms from now}; or {later, ms from now}, which leaves
--              class and attempts; or {recrawl, ms from now, its id among those of its
--              site, its entry then}; or {dead, its cause, 1 for KEYS[15], what comes
--              before the entry in its dead letter, how many fetches it took here,
--              whether no request was made for it}
-- Reply        per settlement a digit per outcome: 1 settled, 0 gone; of a site that is
--              kept then class, ticket and ms until it may be used, each after a space
-- Cost         O(outcomes + log sites) per settlement
-- Repeat       settled outcomes are gone; values of the site are written only while its
--              token is the settlement's, by the call that releases it. A ticket whose
--              reply is lost is void when its site is due for all
local causes, most, most_recrawls = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local DEAD = 14 -- KEYS[DEAD + cause]
local REST = 1000 -- ms, as callers of reserve.lua retry
local counters = tonumber(ARGV[5])

-- with_attempts is an entry with this class and these attempts, not lost any more.
local function with_attempts(entry, p, attempts)
  return string.sub(entry, 1, 1) .. string.char(48 + p, 48, attempts) .. string.sub(entry, 5)
end

-- apply_outcomes applies each outcome, and returns which were still open, whether
-- entries returned to a queue of the site, and whether some wait there. A blocked site
-- gets none.
local function apply_outcomes(block, entries, indexes, outcomes, blocked)
  local settled, requeued, waits = {}, {}, false
  for i, index in ipairs(indexes) do
    local o = outcomes[i]
    local kind, wait = o, nil
    if type(o) == 'table' then kind, wait = o[1], o[2] end

    local entry = entries[i]
    settled[i] = entry and '1' or '0'
    if entry then
      local p, attempts = class(entry), string.byte(entry, 4)
      add_stat('open', -1)
      if kind == 'done' then
        add_stat('done', 1)
      elseif kind == 'recrawl' then
        local _, _, id, kept = unpack(o)
        add_stat('done', 1)
        if not blocked then keep_recrawl(block, wait, id, kept, most_recrawls) end
        waits = not blocked
      elseif kind == 'dead' then
        local _, cause, element_head, tries, unasked = unpack(o)
        dead_letter(KEYS[DEAD + cause], element_head .. with_attempts(entry, p, math.min(255, attempts + tries)), most)
        if unasked then add_stat('unasked', 1) end
      elseif blocked then
        add_stat('blocked', 1)
      elseif wait then
        local waiting = with_attempts(entry, p, attempts)
        if kind == 'retry' then waiting = with_attempts(entry, math.min(3, p + 1), math.min(255, attempts + 1)) end
        local added = call('ZADD', KEYS[block + RETRIES], int(NOW + wait), waiting)
        add_stat('retried', 1)
        add_stat('waiting', added)
        add_stat('merged', 1 - added)
        waits = true
      else
        requeued[#requeued + 1] = {index = tonumber(index), entry = with_attempts(entry, p, attempts), class = p}
      end
    end
  end

  table.sort(requeued, function(x, y) return x.index > y.index end)
  for _, r in ipairs(requeued) do call('LPUSH', KEYS[block + QUEUE + r.class], r.entry) end
  add_stat('queued', #requeued)
  return table.concat(settled), requeued[1], waits
end

local settlements, members = {}, {}
for a = 6 + 2 * counters, #ARGV do
  local settlement = {cmsgpack.unpack(ARGV[a])}
  settlements[#settlements + 1] = settlement
  members[#members + 1] = settlement[1] .. ' ' .. settlement[2]
end
local leases, ended = call('ZMSCORE', LEASES, unpack(members)), {} -- deadlines by settlement; members that end now, also by name

try_all()
try_counters()
local reply, block, last_block, last_site = {}, 15 + causes, nil, nil
for i, settlement in ipairs(settlements) do
  local token, site, indexes, outcomes, free, cookies, last, pages, dead, seed_outcomes, counts, walls = unpack(settlement, 1, 12)
  local member, visit = members[i], KEYS[block + VISIT]
  local s = call('HMGET', KEYS[block], 'token', 'clock', 'reserved_until', 'totals', 'auth', unpack(STAYS))
  local site_token, clock, reserved_until, totals, auth = s[1], tonumber(s[2]) or 0, tonumber(s[3]) or 0, s[4], s[5]
  local stays, blocked, is_paused = s[6] or s[7] or s[8] or s[9] or s[10] or s[11], s[8], s[10]
  local entries = {}
  local leased = leases[i] and not ended[member]
  if leased and indexes[1] then
    entries = call('HMGET', visit, unpack(indexes))
    call('HDEL', visit, unpack(indexes))
  end

  local settled, requeued, waits = apply_outcomes(block, entries, indexes, outcomes, blocked)
  reply[#reply + 1] = settled
  local whole = leased and not string.find(settled, '0', 1, true)
  collect_counters(whole, seed_outcomes, counts)
  totals = whole and (site_token or clock ~= 0) and site_totals(site, totals, last, pages, dead)
  if leased then
    local mine = site_token == token
    local freed, kept = mine and free, nil
    local takes = mine and (freed or string.find(settled, '1', 1, true))
    if cookies and takes then keep_cookies(block, cookies) end
    if walls and takes then clock = keep_walls(block, site, clock, unpack(walls)) end
    if freed then
      local remain, delay, why, failures
      remain, delay, why, failures, kept = unpack(free)
      if reserved_until > NOW then remain = math.max(remain, REST) end -- for callers of reserve that retry
      clock = math.max(clock, NOW + 1 + remain)
      release_site(block, clock, stays, delay, why, failures, totals)
    elseif totals then
      call('HSET', KEYS[block], 'totals', totals)
    end

    local empty = freed and call('EXISTS', visit, unpack(KEYS, block + QUEUE, block + RECRAWLS)) == 0 -- as most sites then are
    if empty or (freed or not mine) and call('EXISTS', visit) == 0 then ended[#ended + 1], ended[member] = member, true end
    local misplaced = not mine and (requeued or waits and call('EXISTS', unpack(KEYS, block + QUEUE, block + QUEUE + 3)) == 0)
    if not empty and (freed or misplaced) then
      local p, ticket = place_site(block, site, freed, freed and {clock, false, is_paused, auth}, kept)
      if p then reply[i] = table.concat({settled, p, ticket, int(clock - NOW)}, ' ') end
    end
    if freed or string.find(settled, '1', 1, true) then last_block, last_site = block, site end -- not for a late copy
  end
  block = block + 9
end
if ended[1] then call('ZREM', LEASES, unpack(ended)) end
if last_site then sample_queue(last_block, last_site) end
keep_seed_outcomes()
write_counters(6, counters)
write_stats()
return reply
