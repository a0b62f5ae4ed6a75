-- admit: makes new URLs known and queues them. Candidates come in runs: as many
-- as follow each other of one site, class and filter.
-- KEYS[1..9]   as in the prelude
-- KEYS[10..]   the filters that candidates fall in, all keys of each; then per run s
--              of its site, then per run q of its class
-- ARGV[1]      epoch
-- ARGV[2]      RPUSH (breadth) or LPUSH (depth)
-- ARGV[3]      entries that a list may have
-- ARGV[4..6]   the memory watermarks, as in watermarks.lua
-- ARGV[7..8]   keys of a filter and URLs that the last may have, as in filters.lua;
--              -1: what does not fit is full
-- ARGV[9..11]  how many filters, runs, candidates
-- ARGV[12]     1: the settings cap some of the sites; else 0
-- ARGV[13]     bytes that a list may take, as in bytes.lua
-- ARGV[14..]   per run: its site; then how many candidates; then, if there are
--              several filters, which, 1 the first; then, if ARGV[12], URLs that its
--              site may have, 0 = any. Per candidate: the 16 bytes that must be new;
--              then its entry; then, if any is a refetch, its plain fingerprint, or ''
-- Reply        a verdict code a candidate: a admitted, s seen, c capped, t turned away
--              by the cutoff, f full; or as filters.lua says
-- Cost         O(candidates) probes and pushes, O(log sites) per list that was empty
-- Repeat       what was admitted is seen; what was turned away counts once more
local push, most = ARGV[2], tonumber(ARGV[3])
local low, high, others_longest = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local each, most_known = tonumber(ARGV[7]), tonumber(ARGV[8])
local filters, runs, n, capped = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11]), ARGV[12] == '1'
local unfit = undeclared(tonumber(keys) or 1, each, filters)
if unfit then return unfit end

-- Where the parts of run r and candidate i are: ARGV[SITE + r], ARGV[ENTRY + i].
local SITE, SIZE = 13, 13 + runs
local FILTER_OF = SIZE + runs
local CAP = FILTER_OF + (filters > 1 and runs or 0)
local NEW = CAP + (capped and runs or 0)
local ENTRY, PLAIN = NEW + n, NEW + 2 * n
local LAST_OF, S = 9, 9 + each * filters -- KEYS[LAST_OF + each * f] is the last of filter f
local Q = S + runs -- KEYS[Q + r]

-- last is the last candidate of each run; members are the candidates of each filter.
local last, members = {[0] = 0}, {}
for f = 1, filters do members[f] = {} end
for r = 1, runs do
  last[r] = last[r - 1] + ARGV[SIZE + r]
  local list = members[filters > 1 and tonumber(ARGV[FILTER_OF + r]) or 1]
  for i = last[r - 1] + 1, last[r] do list[#list + 1] = i end
end

-- What can refuse: caps and blocks of sites; the bounds of lists, if any was near; the cutoff.
local binding = ruled or capped
local memory = high > 0 and read_memory(low, high, others_longest)
local cutoff = memory and memory.cutoff or math.huge
local bounded = cutoff < math.huge or heavy or (tonumber(call('HGET', STATS, 'queued')) or 0) + n > most

-- site_of is what is kept of the site of a run, read once.
local sites = {}
local function site_of(r)
  local key = KEYS[S + r]
  if sites[key] then return sites[key] end
  local s = call('HMGET', key, 'clock', 'token', 'paused', 'blocked', 'cap', 'n', 'auth')
  local clock, token, is_paused, blocked, cap, admitted = s[1], s[2], s[3], s[4], tonumber(s[5]), tonumber(s[6]) or 0
  local site = {clock = tonumber(clock) or 0, token = token, is_paused = is_paused, auth = s[7]}
  site.cap = cap or capped and tonumber(ARGV[CAP + r]) or 0
  site.left = blocked and 0 or site.cap > 0 and site.cap - admitted or math.huge
  sites[key] = site
  return site
end

-- refusal is the verdict code of what refuses one more candidate of a run, nil if it fits.
local lengths, verdicts = {}, {} -- by key of the list; by candidate
local function refusal(r)
  local key, site = KEYS[Q + r], binding and site_of(r)
  local length = lengths[key] or bounded and length_of(key, KEYS[S + r], ARGV[ENTRY + last[r]], most) or 0
  lengths[key] = length
  if site and site.left <= 0 or length >= most then return 'c' end
  if length >= cutoff then
    add_stat('turned_away', 1)
    return 't'
  end
  if site then site.left = site.left - 1 end
  lengths[key] = length + 1
end

-- Which are known, and which of the others fit.
for f, list in ipairs(members) do
  known(list, LAST_OF + each * (f - 1) + 1, each, verdicts, NEW)
end
if binding or bounded then
  for r = 1, runs do
    for i = last[r - 1] + 1, last[r] do verdicts[i] = verdicts[i] or refusal(r) end
  end
end

-- What each filter gets: no key of it larger than can be moved.
local news, adds, crowded = {}, {}, {}
for f, list in ipairs(members) do
  news[f], adds[f] = fresh(list, verdicts, NEW, PLAIN)
  crowded[f] = news[f][1] and not fits(KEYS[LAST_OF + each * f], #adds[f], most_known)
  if crowded[f] and most_known >= 0 then return redis.error_reply('GROW the filters') end
end

local full, failed = try_admit(push)
if failed then return failed end

for f, new in ipairs(news) do
  local added = {}
  if new[1] and not full and not crowded[f] then
    added = redis.pcall('BF.INSERT', KEYS[LAST_OF + each * f], 'NOCREATE', 'ITEMS', unpack(adds[f]))
    if is_refused(added) then return added end
  end
  for x, i in ipairs(new) do verdicts[i] = type(added[x]) == 'number' and 'a' or 'f' end
end

-- Queue what was admitted: each list at once, though it may have several runs.
local additions, run_of = {}, {} -- by key of the list
for r = 1, runs do
  local key = KEYS[Q + r]
  for i = last[r - 1] + 1, last[r] do
    if verdicts[i] == 'a' then
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
  if length >= LONG then measure_list(KEYS[S + r], key, length, entries) end
  if length == added or binding then
    local site = site_of(r)
    if length == added then promote_site(class(entries[1]), ARGV[SITE + r], site.clock, site.token, site.is_paused) end
    if length == added and site.auth then call('PERSIST', KEYS[S + r]) end -- it has work
    if site.cap > 0 then
      call('HINCRBY', KEYS[S + r], 'n', added)
      call('PERSIST', KEYS[S + r])
    end
  end
  add_stat('queued', added)
  add_stat('known', added)
end

if not full then
  add_stat('admits', stat_changes.known and 1 or 0)
  add_stat('calls', 1)
  write_stats()
  if memory then keep_watermark(memory, lengths, NOW) end
end
return table.concat(verdicts)
