-- sums: what settle sums up, for reports: counts of the shard, what became of its
-- first seeds, and of each site its pages, its dead and the last answer; lists of the
-- first sites by these. A settlement counts whole, when all of its outcomes take
-- effect, or not at all.
-- KEYS[10]  the sums, a hash of counters
-- KEYS[11]  what became of seeds, a hash; note puts them there
-- KEYS[12..14] the first sites by pages, by dead URLs and by queue, zsets
-- ARGV[+]   at the end of a settlement: what came of the last request, '' = nothing;
--           pages; dead URLs; seeds, {URL, fate, URL, fate, ...}; and 'number count '
--           for each counter of the call that it adds to
-- Reply     none of its own
-- Cost      O(counters) a settlement, one HINCRBY for each name of a call; 3 us more
--           where a site is among the first, or looked at for the list by queue
-- Repeat    the outcomes are gone then, and nothing is counted
local SUMS, SEEDS, PAGES, DEADEST, LONGEST = KEYS[10], KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local TOP, STEP, SEEDS_KEPT = 100, 16, 100 -- as TopKept, TopStep and SeedsKept in Go

-- try_sums tries what is missed here, and in what keeps URLs to be fetched again,
-- only after a write.
local function try_sums()
  for _, name in ipairs {'HLEN', 'LLEN', 'ZCARD'} do call(name, NEVER) end
end

local summed = {}
local function sum(name, n) summed[name] = (summed[name] or 0) + n end

-- trim bounds a list, and least is the count that a site needs for it.
local function trim(list)
  if call('ZCARD', list) > TOP then call('ZREM', list, call('ZRANGE', list, 0, 0)[1]) end
end
local leasts = {}
local function least(list)
  if not leasts[list] then
    local first = call('ZCARD', list) >= TOP and call('ZRANGE', list, 0, 0, 'WITHSCORES')
    leasts[list] = first and tonumber(first[2]) or -1
  end
  return leasts[list]
end

-- enlist notes a count that grew in a list; a large one not each time.
local function enlist(list, site, n, grew)
  if grew == 0 or n > STEP and n % STEP >= grew or n <= least(list) then return end
  if call('ZADD', list, 'GT', n, site) == 1 then
    trim(list)
    leasts[list] = nil
  end
end

-- class_of is what sites are counted by: 2xx for a status, else the cause.
local function class_of(last) return #last == 3 and string.gsub(last, '^(%d)%d%d$', '%1xx') or last end

-- tally_site returns what now came of a site of which got came before, nil if nothing
-- new did. Its s is there, and keeps it.
local function tally_site(site, got, last, pages, dead)
  if last == '' and pages + dead == 0 then return end
  local had_pages, had_dead, since, before = string.match(got or '', '^(%d+) (%d+) (%d+) (.*)$')
  since = since or int(math.floor(NOW / 1000))
  if last == '' then last = before or '' end
  local all_pages, all_dead = (had_pages or 0) + pages, (had_dead or 0) + dead

  enlist(PAGES, site, all_pages, pages)
  enlist(DEADEST, site, all_dead, dead)
  if before ~= last and last ~= '' then
    sum('site:' .. class_of(last), 1)
    if before and before ~= '' then sum('site:' .. class_of(before), -1) end
  end
  return string.format('%d %d %s %s', all_pages, all_dead, since, last)
end

-- parts is what whole settlements add to the counters of the call; unless any is
-- broken, together they are its totals.
local parts, broken = {}, false
local seeds, fates = {}, {} -- of whole settlements

-- take_sums counts a settlement if it is whole.
local function take_sums(whole, seeds_fates, counts)
  broken = broken or not whole
  if not whole then return end
  parts[#parts + 1] = counts
  for i = 1, #seeds_fates, 2 do seeds[#seeds + 1], fates[#fates + 1] = seeds_fates[i], seeds_fates[i + 1] end
end

-- keep_seeds writes what became of seeds: of the first ones, and of these what is new.
local function keep_seeds()
  if not seeds[1] then return end
  local room, there = SEEDS_KEPT - call('HLEN', SEEDS), {}
  if room < #seeds then there = call('HMGET', SEEDS, unpack(seeds)) end
  for i, url in ipairs(seeds) do
    if room > 0 or there[i] then room = room - call('HSET', SEEDS, url, fates[i]) end
  end
end

-- look_at_queue keeps the list of the longest queues: of a site now and then.
local LOOK_EVERY = 4 -- so many calls go by, about, until one looks
local function look_at_queue(block, site)
  if NOW % LOOK_EVERY ~= 0 then return end
  local n = call('ZCARD', KEYS[block + RETRIES])
  for p = 0, 3 do n = n + call('LLEN', KEYS[block + QUEUE + p]) end
  if n > 0 then
    call('ZADD', LONGEST, n, site)
    trim(LONGEST)
  else
    call('ZREM', LONGEST, site)
  end
end

-- count_sums writes the counts; those of the call start at ARGV[first].
local function count_sums(first, counters)
  if broken then
    for _, counts in ipairs(parts) do
      for number, n in string.gmatch(counts, '(%d+) (%-?%d+) ') do sum(ARGV[first + 2 * number - 2], tonumber(n)) end
    end
  else
    for a = first, first + 2 * counters - 2, 2 do sum(ARGV[a], tonumber(ARGV[a + 1])) end
  end
  for name, n in pairs(summed) do
    if n ~= 0 then call('HINCRBY', SUMS, name, int(n)) end
  end
end
