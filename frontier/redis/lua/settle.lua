-- settle: takes outcomes of visits by index, and gives sites back.
-- KEYS[1..9]   as in the prelude
-- KEYS[10..14] as in sums
-- KEYS[15..]   the dead lists of the causes, then per settlement 9: the block of
--              its site, then v of its token
-- ARGV[1]      epoch
-- ARGV[2]      how many causes
-- ARGV[3]      letters that a dead list may hold
-- ARGV[4]      URLs of a site that may wait to be fetched again
-- ARGV[5..]    how many counters of sums the call has, and per counter its name and
--              what all settlements add to it
-- ARGV[+]      per settlement a message (MessagePack): its token; its site; indexes of
--              its outcomes, each once; what became of each; the release of its site,
--              nil = it is kept: {ms until it may be asked again, delay ms, why,
--              failures}; its cookies, nil = they stay; then as in sums. What became of
--              one is done or requeue; or {retry, ms from now}, {later, ms from now},
--              which leaves the entry as it is; or {again, ms from now, what it is known
--              by among those of its site, its entry then}; or {dead, its cause, 1 for
--              KEYS[15], what comes before the entry in its letter, how many fetches it
--              took here, whether no request was made for it}
-- Reply        per settlement a letter per outcome: 1 settled, 0 gone
-- Cost         O(outcomes + log sites) per settlement
-- Repeat       what is settled is gone; values of the site are written only
--              while it holds the token, by the call that frees it
local causes, most, most_again = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local DEAD = 14 -- KEYS[DEAD + cause]
local REST = 1000 -- ms, as reserve.lua has them ask again
local counters = tonumber(ARGV[5])

-- mark writes class and attempts of an entry, which is not lost any more.
local function mark(entry, p, attempts)
  return string.sub(entry, 1, 1) .. string.char(48 + p, 48, attempts) .. string.sub(entry, 5)
end

-- finish does what each outcome asks, and says which were still open, and whether
-- the site got anything back. A blocked site gets nothing.
local function finish(block, entries, indexes, outcomes, blocked)
  local letters, requeued, touched = {}, {}, false
  for i, index in ipairs(indexes) do
    local o = outcomes[i]
    local kind, wait = o, nil
    if type(o) == 'table' then kind, wait = o[1], o[2] end

    local entry = entries[i]
    letters[i] = entry and '1' or '0'
    if entry then
      local p, attempts = class(entry), string.byte(entry, 4)
      tally('open', -1)
      if kind == 'done' then
        tally('done', 1)
      elseif kind == 'again' then
        local _, _, id, kept = unpack(o)
        tally('done', 1)
        if not blocked then keep(block, wait, id, kept, most_again) end
        touched = not blocked
      elseif kind == 'dead' then
        local _, cause, letter_head, tries, unasked = unpack(o)
        bury(KEYS[DEAD + cause], letter_head .. mark(entry, p, math.min(255, attempts + tries)), most)
        if unasked then tally('unasked', 1) end
      elseif blocked then
        tally('blocked', 1)
      elseif wait then
        local again = mark(entry, p, attempts)
        if kind == 'retry' then again = mark(entry, math.min(3, p + 1), math.min(255, attempts + 1)) end
        local added = call('ZADD', KEYS[block + RETRIES], int(NOW + wait), again)
        tally('retried', 1)
        tally('waiting', added)
        tally('merged', 1 - added)
        touched = true
      else
        requeued[#requeued + 1] = {index = tonumber(index), entry = mark(entry, p, attempts), class = p}
        touched = true
      end
    end
  end

  table.sort(requeued, function(x, y) return x.index > y.index end)
  for _, r in ipairs(requeued) do call('LPUSH', KEYS[block + QUEUE + r.class], r.entry) end
  tally('queued', #requeued)
  return table.concat(letters), touched
end

local settlements, members = {}, {}
for a = 6 + 2 * counters, #ARGV do
  local settlement = {cmsgpack.unpack(ARGV[a])}
  settlements[#settlements + 1] = settlement
  members[#members + 1] = settlement[1] .. ' ' .. settlement[2]
end
local leases, ended = call('ZMSCORE', LEASES, unpack(members)), {} -- when they end, by settlement; those that end now, and by member

try_all()
try_sums()
local reply, block, last_block, last_site = {}, 15 + causes, nil, nil
for i, settlement in ipairs(settlements) do
  local token, site, indexes, outcomes, free, cookies, last, pages, dead, seeds_fates, counts = unpack(settlement, 1, 11)
  local member, visit = members[i], KEYS[block + VISIT]
  local s = call('HMGET', KEYS[block], 'token', 'clock', 'line', 'got', 'auth', unpack(STAYS))
  local lent, clock, line, got, auth = s[1], tonumber(s[2]) or 0, tonumber(s[3]) or 0, s[4], s[5]
  local stays, blocked, held = s[6] or s[7] or s[8] or s[9] or s[10] or s[11], s[8], s[10]
  local entries = {}
  local leased = leases[i] and not ended[member]
  if leased and indexes[1] then
    entries = call('HMGET', visit, unpack(indexes))
    call('HDEL', visit, unpack(indexes))
  end

  local letters, touched = finish(block, entries, indexes, outcomes, blocked)
  reply[#reply + 1] = letters
  local whole = leased and not string.find(letters, '0', 1, true)
  take_sums(whole, seeds_fates, counts)
  got = whole and (lent or clock ~= 0) and tally_site(site, got, last, pages, dead)
  if leased then
    local mine = lent == token
    local freed = mine and free
    if cookies and mine and (freed or string.find(letters, '1', 1, true)) then keep_cookies(block, cookies) end
    if freed then
      local remain, delay, why, failures = unpack(free)
      if line > NOW then remain = math.max(remain, REST) end -- for those who wait to reserve
      clock = math.max(clock, NOW + 1 + remain)
      release(block, clock, stays, delay, why, failures, got)
    elseif got then
      call('HSET', KEYS[block], 'got', got)
    end

    local empty = freed and call('EXISTS', visit, unpack(KEYS, block + QUEUE, block + AGAIN)) == 0 -- as most sites then are
    if empty or (freed or not mine) and call('EXISTS', visit) == 0 then ended[#ended + 1], ended[member] = member, true end
    if not empty and (freed or touched and not mine) then place(block, site, freed, freed and {clock, false, held, auth}) end
    if freed or string.find(letters, '1', 1, true) then last_block, last_site = block, site end -- not for a late copy
  end
  block = block + 9
end
if ended[1] then call('ZREM', LEASES, unpack(ended)) end
if last_site then look_at_queue(last_block, last_site) end
keep_seeds()
count_sums(6, counters)
count()
return reply
