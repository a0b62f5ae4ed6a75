-- prelude: what every script of a shard starts with. It checks the epoch, reads
-- the clock and defines the ready rule: which zset a site stands in, and since
-- when.
-- KEYS[1..3]  meta, stats, leases
-- KEYS[4..8]  ready:0 to ready:3, held
-- KEYS[9]     a name that no key ever has. While a slot moves, Redis runs a script
--             on a node that has all of its declared keys, and aborts it in the
--             middle if it empties one and looks at it again. With a key that is
--             always missing no script runs until the slot has moved.
-- ARGV[1]     epoch of the crawl that the caller works on
-- Reply       '!stale' if the shard belongs to another epoch, else the script's
-- Cost        O(1); place and rise O(log sites of the shard)
-- Repeat      writes nothing by itself; place and rise set, they do not add
local call, KEYS, ARGV = redis.call, KEYS, ARGV -- locals are faster than globals
local META, STATS, LEASES = KEYS[1], KEYS[2], KEYS[3]
local READY, HELD = 4, 8 -- KEYS[READY + p] is ready of class p

-- A site's block of keys starts with its s. KEYS[block + QUEUE + p] is its queue
-- of class p, KEYS[block + RETRIES] its w, KEYS[block + VISIT] the v of a token.
local QUEUE, RETRIES, VISIT = 1, 5, 6
local DAY = 86400000 -- ms

local meta = call('HMGET', META, 'epoch', 'rev', 'paused', 'tick', 'quiet', 'ruled', 'turn', 'ahead')
local epoch, rev, paused = meta[1], meta[2], meta[3]
local tick, quiet = tonumber(meta[4]) or 0, tonumber(meta[5]) or 0
local ruled, turn, ahead = meta[6], tonumber(meta[7]) or 0, tonumber(meta[8]) or 0
if epoch ~= ARGV[1] then return '!stale' end

-- CLOCK is what the clock shows, ms, ahead of the server's where that was set
-- back. NOW is the time: never behind the last tick.
local time = call('TIME')
local CLOCK = time[1] * 1000 + math.floor(time[2] / 1000) + ahead
local NOW = math.max(CLOCK, tick)

-- int formats a whole number as every server and client reads it.
local function int(x) return string.format('%.0f', x) end

-- An entry starts with its version, its class, and how often its fetcher was lost.
local function class(entry) return string.byte(entry, 2) - 48 end
local function losses(entry) return string.byte(entry, 3) - 48 end

-- tally collects changes of counters, count writes them.
local changes = {}
local function tally(name, n) changes[name] = (changes[name] or 0) + n end
local function count()
  for name, n in pairs(changes) do
    if n ~= 0 then call('HINCRBY', STATS, name, n) end
  end
end

-- place puts a site where the ready rule wants it. absent says that it stands in
-- none of the zsets, as one that was lent.
local function place(block, site, absent)
  local s = call('HMGET', KEYS[block], 'clock', 'token', 'paused')
  local clock, token, held = tonumber(s[1]) or 0, s[2], s[3]

  local zset, due
  if not token then
    for p = 0, 3 do
      if call('EXISTS', KEYS[block + QUEUE + p]) == 1 then
        zset, due = READY + p, NOW
        break
      end
    end
    if not zset then
      local first = call('ZRANGE', KEYS[block + RETRIES], 0, 0, 'WITHSCORES')
      if first[1] then
        zset, due = READY + 3, tonumber(first[2])
      end
    end
    if zset and held then zset = HELD end
  end

  if not absent then
    for z = READY, HELD do
      if z ~= zset then call('ZREM', KEYS[z], site) end
    end
  end
  if zset then call('ZADD', KEYS[zset], int(math.max(clock, due)), site) end
end

-- rise is the ready rule for a site whose queue of class p was empty and got
-- entries. It needs no other key of the site than what its s holds.
local some = {} -- which zsets hold anything
local function rise(p, site, clock, token, held)
  if token then return end
  local zset = held and HELD or READY + p
  if not held then
    for z = READY, READY + 3 do
      if some[z] == nil then some[z] = call('EXISTS', KEYS[z]) == 1 end
      if some[z] then
        if z < zset and call('ZSCORE', KEYS[z], site) then return end -- it has better work
        if z > zset and call('ZREM', KEYS[z], site) == 1 then break end
      end
    end
    some[zset] = true
  end
  call('ZADD', KEYS[zset], int(math.max(clock, NOW)), site)
end

-- expire lets the s of a site go a day after its clock, in the server's time,
-- unless it holds what stays.
local function expire(block, clock)
  local s = call('HMGET', KEYS[block], 'token', 'n', 'cap', 'blocked', 'override', 'paused')
  if s[1] or s[2] or s[3] or s[4] or s[5] or s[6] then
    call('PERSIST', KEYS[block])
  else
    call('PEXPIREAT', KEYS[block], int(math.max(clock, NOW) + DAY - ahead))
  end
end

-- free takes the token off a site, which nobody may ask before clock.
local function free(block, clock)
  call('HDEL', KEYS[block], 'token')
  call('HSET', KEYS[block], 'clock', int(clock))
  expire(block, clock)
end

-- bury adds a letter to a dead list that may hold so many.
local function bury(list, letter, most)
  local n = call('RPUSH', list, letter)
  if n > most then
    call('LTRIM', list, n - most, -1)
    tally('dropped', n - most)
  end
  tally('dead', 1)
  tally(string.match(list, '}:(dead:.*)$'), 1)
end
-- marks: how full the server is and, above the marks, the bar: a link to a queue
-- as long as the bar is turned away. The longest queues come first, then, while
-- memory goes on rising, ever shorter ones, and half way to maxmemory all: the
-- rest is for new sites, retries and what else a server needs.
-- KEYS[1]  meta: pressed, from when memory was above the high mark until it is
--          below the low one; longest, the length of the longest queue that links
--          were offered to lately, and since when it stands there, ms
-- KEYS[2]  stats
-- ARGV[1]  epoch
-- ARGV[2+] where the script says: the low and the high mark, per cent of maxmemory,
--          0 = none; the longest queue of other shards of the server
-- Reply    none of its own
-- Cost     O(1), one INFO
-- Repeat   weigh reads only, remember sets

-- weigh looks at the server. was is what the last call left.
local function weigh(low, high, elsewhere)
  local info = redis.pcall('INFO', 'memory')
  local function field(name)
    if type(info) ~= 'string' then return 0 end -- asking is forbidden
    local _, at = string.find(info, '\n' .. name .. ':', 1, true)
    return at and tonumber(string.match(info, '^%d+', at + 1)) or 0
  end

  -- As Redis compares them before a write.
  local m = {}
  m.used = field('used_memory') - field('mem_not_counted_for_evict')
  m.limit = field('maxmemory')
  m.bar = math.huge
  if high == 0 then return m end

  local s = redis.call('HMGET', KEYS[1], 'pressed', 'longest', 'since')
  local was_pressed, longest, since = s[1], tonumber(s[2]), tonumber(s[3]) or 0
  m.was_pressed, m.since = was_pressed, since
  m.longest = longest or tonumber(redis.call('HGET', KEYS[2], 'queued')) or 0 -- not more than this
  if m.limit == 0 then return m end

  local full = 100 * m.used / m.limit
  m.pressed = full > high or was_pressed and full >= low
  if m.pressed then
    local above = math.min(math.max(full - high, 0) / (100 - high) * 2, 1)
    m.bar = math.max(math.floor(math.max(m.longest, elsewhere) ^ (1 - above)), 1)
  end
  return m
end

-- remember keeps what the next call weighs by; lengths are those of the queues of
-- this one. A queue that is offered no more links is forgotten by halves.
local function remember(m, lengths, now)
  local age, seen = now - m.since, 0
  for _, length in pairs(lengths) do seen = math.max(seen, length) end

  local longest
  if seen > 1.05 * m.longest or seen >= 0.9 * m.longest and age >= 1000 then
    longest = seen
  elseif age >= 10000 then
    longest = math.max(seen, math.floor(m.longest / 2))
  end
  if longest then
    redis.call('HSET', KEYS[1], 'longest', string.format('%.0f', longest), 'since', string.format('%.0f', now))
  end

  if m.pressed and not m.was_pressed then redis.call('HSET', KEYS[1], 'pressed', 1) end
  if m.was_pressed and not m.pressed then redis.call('HDEL', KEYS[1], 'pressed') end
end
-- admit: makes new URLs known and queues them. Candidates come in runs: as many
-- as follow each other of one site, class and filter.
-- KEYS[1..9]   as in the prelude
-- KEYS[10..]   the filters that candidates fall in, then per run s of its site, then
--              per run q of its class
-- ARGV[1]      epoch
-- ARGV[2]      RPUSH (breadth) or LPUSH (depth)
-- ARGV[3]      entries that a list may hold
-- ARGV[4..6]   the memory marks, as in marks.lua
-- ARGV[7..9]   how many filters, runs, candidates
-- ARGV[10]     1: the settings cap some of the sites; else 0
-- ARGV[11..]   per run: its site; then how many candidates; then, if there are
--              several filters, which, 1 = KEYS[10]; then, if ARGV[10], URLs that its
--              site may have, 0 = any. Per candidate: the 16 bytes that must be new;
--              then its entry; then, if any is wanted again, its plain fingerprint, or ''
-- Reply        a letter a candidate: a admitted, s seen, c capped, t turned away by
--              the marks, f full; or '!lost' and which declared filter is missing
-- Cost         O(candidates) probes and pushes, O(log sites) per list that was empty
-- Repeat       what was admitted is seen; what was turned away counts once more
local push, most = ARGV[2], tonumber(ARGV[3])
local low, high, elsewhere = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local filters, runs, n, capped = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), ARGV[10] == '1'

-- Where the parts of run r and candidate i are: ARGV[SITE + r], ARGV[ENTRY + i].
local SITE, SIZE = 10, 10 + runs
local FILTER_OF = SIZE + runs
local CAP = FILTER_OF + (filters > 1 and runs or 0)
local NEW = CAP + (capped and runs or 0)
local ENTRY, PLAIN = NEW + n, NEW + 2 * n
local FILTER, S, Q = 9, 9 + filters, 9 + filters + runs -- KEYS[Q + r]

-- last is the last candidate of each run; members are the candidates of each filter.
local last, members = {[0] = 0}, {}
for f = 1, filters do members[f] = {} end
for r = 1, runs do
  last[r] = last[r - 1] + ARGV[SIZE + r]
  local list = members[filters > 1 and tonumber(ARGV[FILTER_OF + r]) or 1]
  for i = last[r - 1] + 1, last[r] do list[#list + 1] = i end
end

-- What binds: caps and blocks of sites; the bound of lists, if the shard has as
-- much; the marks.
local binding = ruled or capped
local memory = high > 0 and weigh(low, high, elsewhere)
local bar = memory and memory.bar or math.huge
local bounded = bar < math.huge or (tonumber(call('HGET', STATS, 'queued')) or 0) + n > most

-- site_of is what is kept of the site of a run, read once.
local sites = {}
local function site_of(r)
  local key = KEYS[S + r]
  if sites[key] then return sites[key] end
  local s = call('HMGET', key, 'clock', 'token', 'paused', 'blocked', 'cap', 'n')
  local clock, token, held, blocked, cap, admitted = s[1], s[2], s[3], s[4], tonumber(s[5]), tonumber(s[6]) or 0
  local site = {clock = tonumber(clock) or 0, token = token, held = held}
  site.cap = cap or capped and tonumber(ARGV[CAP + r]) or 0
  site.left = blocked and 0 or site.cap > 0 and site.cap - admitted or math.huge
  sites[key] = site
  return site
end

-- refused is the letter of what binds one more candidate of a run, nil if it fits.
local lengths = {} -- of lists, by key
local function refused(r)
  local key, site = KEYS[Q + r], binding and site_of(r)
  local length = lengths[key] or bounded and call('LLEN', key) or 0
  lengths[key] = length
  if site and site.left <= 0 or length >= most then return 'c' end
  if length >= bar then
    tally('turned', 1)
    return 't'
  end
  if site then site.left = site.left - 1 end
  lengths[key] = length + 1
end

-- Which are known, and which of the others fit.
local letters = {}
for f, list in ipairs(members) do
  local key = KEYS[FILTER + f]
  if call('EXISTS', key) == 0 then return '!lost ' .. f end
  local prints = {}
  for x, i in ipairs(list) do prints[x] = ARGV[NEW + i] end
  for x, yes in ipairs(call('BF.MEXISTS', key, unpack(prints))) do
    if yes == 1 then letters[list[x]] = 's' end
  end
end
if binding or bounded then
  for r = 1, runs do
    for i = last[r - 1] + 1, last[r] do letters[i] = letters[i] or refused(r) end
  end
end

-- The first write of all: above maxmemory it is refused, and nothing is done.
local first = redis.pcall('HINCRBY', STATS, 'calls', 1)
local full = type(first) == 'table'
if full and not string.find(first.err, 'OOM', 1, true) then return first end

for f, list in ipairs(members) do
  local new, prints, added = {}, {}, {}
  for _, i in ipairs(list) do
    if not letters[i] then
      new[#new + 1] = i
      prints[#prints + 1] = ARGV[NEW + i]
    end
  end
  for _, i in ipairs(ARGV[PLAIN + 1] and new or {}) do
    local plain = ARGV[PLAIN + i]
    if plain ~= '' then prints[#prints + 1] = plain end
  end
  if new[1] and not full then
    added = redis.pcall('BF.INSERT', KEYS[FILTER + f], 'NOCREATE', 'ITEMS', unpack(prints))
  end
  for x, i in ipairs(new) do letters[i] = type(added[x]) == 'number' and 'a' or 'f' end
end

-- Queue what was admitted: each list at once, though it may have several runs.
local additions, run_of = {}, {} -- by key of the list
for r = 1, runs do
  local key = KEYS[Q + r]
  for i = last[r - 1] + 1, last[r] do
    if letters[i] == 'a' then
      local entries = additions[key] or {}
      entries[#entries + 1] = ARGV[ENTRY + i]
      additions[key], run_of[key] = entries, r
    end
  end
end
for key, entries in pairs(additions) do
  local r, added = run_of[key], #entries
  local length = call(push, key, unpack(entries))
  if memory then lengths[key] = length end
  if length == added or binding then
    local site = site_of(r)
    if length == added then rise(class(entries[1]), ARGV[SITE + r], site.clock, site.token, site.held) end
    if site.cap > 0 then
      call('HINCRBY', KEYS[S + r], 'n', added)
      call('PERSIST', KEYS[S + r])
    end
  end
  tally('queued', added)
  tally('known', added)
end

if changes.known then tally('admits', 1) end
if not full then
  count()
  if memory then remember(memory, lengths, NOW) end
end
return table.concat(letters)
