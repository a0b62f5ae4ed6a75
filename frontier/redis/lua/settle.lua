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
--              what all settlements add to it; then how many settlements, and per
--              settlement its token and its site; then per settlement: how many
--              outcomes, 1 if the site is free, and 2 more if its cookies follow;
--              if free: ms until it may be asked again, delay ms, why, failures; the
--              cookies; then the indexes of the outcomes,
--              each once; then what became of each: done, requeue, retry or (as it is)
--              later and ms from now, or dead (unasked: as dead, and no request was
--              made for it), its cause, 1 for KEYS[15], what comes
--              before the entry in its letter, and how many fetches it took here; or
--              again: as done, and ms until then, what it is known by among those of its
--              site, its entry then; then as in sums
-- Reply        per settlement a letter per outcome: 1 settled, 0 gone
-- Cost         O(outcomes + log sites) per settlement
-- Repeat       what is settled is gone; values of the site are written only
--              while it holds the token, by the call that frees it
local causes, most, most_again = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local DEAD = 14 -- KEYS[DEAD + cause]
local REST = 1000 -- ms, as reserve.lua has them ask again
local counters = tonumber(ARGV[5])

-- next_arg reads ARGV in order.
local at = 5 + 2 * counters
local function next_arg()
  at = at + 1
  return ARGV[at]
end

-- mark writes class and attempts of an entry, which is not lost any more.
local function mark(entry, p, attempts)
  return string.sub(entry, 1, 1) .. string.char(48 + p, 48, attempts) .. string.sub(entry, 5)
end

-- finish does what each outcome asks, and says which were still open, and whether
-- the site got anything back. A blocked site gets nothing.
local function finish(block, entries, indexes, blocked)
  local letters, requeued, touched = {}, {}, false
  for i, index in ipairs(indexes) do
    local kind, unasked = next_arg(), false
    if kind == 'unasked' then kind, unasked = 'dead', true end
    local wait, id, kept, cause, letter_head, tries
    if kind == 'retry' or kind == 'later' or kind == 'again' then wait = tonumber(next_arg()) end
    if kind == 'again' then id, kept = next_arg(), next_arg() end
    if kind == 'dead' then cause, letter_head, tries = tonumber(next_arg()), next_arg(), tonumber(next_arg()) end

    local entry = entries[i]
    letters[i] = entry and '1' or '0'
    if entry then
      local p, attempts = class(entry), string.byte(entry, 4)
      tally('open', -1)
      if kind == 'done' then
        tally('done', 1)
      elseif id then
        tally('done', 1)
        if not blocked then keep(block, wait, id, kept, most_again) end
        touched = not blocked
      elseif kind == 'dead' then
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

local tokens, sites, members = {}, {}, {} -- of the settlements
for i = 1, tonumber(next_arg()) do
  tokens[i], sites[i] = next_arg(), next_arg()
  members[i] = tokens[i] .. ' ' .. sites[i]
end
local leases, ended = call('ZMSCORE', LEASES, unpack(members)), {} -- when they end, by settlement; those that end now, and by member

try_all()
try_sums()
local reply, block, last_block, last_site = {}, 15 + causes, nil, nil
for i, token in ipairs(tokens) do
  local n, flags = tonumber(next_arg()), tonumber(next_arg())
  local is_free, remain, delay, why, failures = flags % 2 == 1, nil, nil, nil, nil
  if is_free then
    remain, delay, why, failures = tonumber(next_arg()), next_arg(), next_arg(), next_arg()
  end
  local cookies = flags > 1 and next_arg()
  local indexes = {unpack(ARGV, at + 1, at + n)}
  at = at + n

  local site, member, visit = sites[i], members[i], KEYS[block + VISIT]
  local s = call('HMGET', KEYS[block], 'token', 'clock', 'line', 'got', 'auth', unpack(STAYS))
  local lent, clock, line, got, auth = s[1], tonumber(s[2]) or 0, tonumber(s[3]) or 0, s[4], s[5]
  local stays, blocked, held = s[6] or s[7] or s[8] or s[9] or s[10], s[8], s[10]
  local entries = {}
  local leased = leases[i] and not ended[member]
  if leased and n > 0 then
    entries = call('HMGET', visit, unpack(indexes))
    call('HDEL', visit, unpack(indexes))
  end

  local letters, touched = finish(block, entries, indexes, blocked)
  reply[#reply + 1] = letters
  got = take_sums(next_arg, leased and not string.find(letters, '0', 1, true), lent or clock ~= 0, site, got)
  if leased then
    local mine = lent == token
    local freed = mine and is_free
    if cookies and mine and (freed or string.find(letters, '1', 1, true)) then keep_cookies(block, cookies) end
    if freed then
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
