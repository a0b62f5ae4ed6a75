-- counters: what settle counts, for reports: counters of the shard, outcomes of its
-- first seeds, and per site its pages, its dead URLs and its last answer; lists of the
-- first sites by these. A settlement counts when all of its outcomes take effect.
-- KEYS[10]  a hash of counters
-- KEYS[11]  outcomes of seeds, a hash; note puts them there
-- KEYS[12..14] the first sites by pages, by dead URLs and by queue, zsets
-- ARGV[+]   at the end of a settlement: status or cause of the last request, '' =
--           none; pages; dead URLs; seeds, {URL, outcome, URL, outcome, ...}; and
--           'number count ' for each counter of the call that it adds to
-- Reply     none of its own
-- Cost      O(counters) a settlement, one HINCRBY for each name of a call; 3 us more
--           where a site is among the first, or sampled for the list by queue
-- Repeat    the outcomes are gone then, and nothing counts
local COUNTERS, SEEDS, PAGES, DEADEST, LONGEST = KEYS[10], KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local TOP, STEP, SEEDS_KEPT = 100, 16, 100 -- as TopKept, TopStep and SeedsKept in Go

-- try_counters tries the commands that this file and keep_recrawl first run after a
-- write.
local function try_counters()
  for _, name in ipairs {'HLEN', 'LLEN', 'ZCARD'} do call(name, NEVER) end
end

local counter_changes = {}
local function add_counter(name, n) counter_changes[name] = (counter_changes[name] or 0) + n end

-- trim bounds a list; least is the count that a site must exceed to enter it.
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

-- list_site writes a count that grew to a list; a large one not each time.
local function list_site(list, site, n, grew)
  if grew == 0 or n > STEP and n % STEP >= grew or n <= least(list) then return end
  if call('ZADD', list, 'GT', n, site) == 1 then
    trim(list)
    leasts[list] = nil
  end
end

-- class_of is the counter of a last answer: 2xx for a status, else the cause.
local function class_of(last) return #last == 3 and string.gsub(last, '^(%d)%d%d$', '%1xx') or last end

-- site_totals returns the new totals of a site, nil if nothing changed. The caller
-- writes them to its s, which must exist.
local function site_totals(site, totals, last, pages, dead)
  if last == '' and pages + dead == 0 then return end
  local had_pages, had_dead, since, before = string.match(totals or '', '^(%d+) (%d+) (%d+) (.*)$')
  since = since or int(math.floor(NOW / 1000))
  if last == '' then last = before or '' end
  local all_pages, all_dead = (had_pages or 0) + pages, (had_dead or 0) + dead

  list_site(PAGES, site, all_pages, pages)
  list_site(DEADEST, site, all_dead, dead)
  if before ~= last and last ~= '' then
    add_counter('site:' .. class_of(last), 1)
    if before and before ~= '' then add_counter('site:' .. class_of(before), -1) end
  end
  return string.format('%d %d %s %s', all_pages, all_dead, since, last)
end

-- parts is what whole settlements add to the counters of the call. Where none is
-- broken, their sum is what ARGV has.
local parts, broken = {}, false
local seeds, outcomes = {}, {} -- of whole settlements

-- collect_counters collects what a settlement adds if it is whole.
local function collect_counters(whole, seed_outcomes, counts)
  broken = broken or not whole
  if not whole then return end
  parts[#parts + 1] = counts
  for i = 1, #seed_outcomes, 2 do seeds[#seeds + 1], outcomes[#outcomes + 1] = seed_outcomes[i], seed_outcomes[i + 1] end
end

-- keep_seed_outcomes writes outcomes of the first seeds.
local function keep_seed_outcomes()
  if not seeds[1] then return end
  local room, there = SEEDS_KEPT - call('HLEN', SEEDS), {}
  if room < #seeds then there = call('HMGET', SEEDS, unpack(seeds)) end
  for i, url in ipairs(seeds) do
    if room > 0 or there[i] then room = room - call('HSET', SEEDS, url, outcomes[i]) end
  end
end

-- sample_queue keeps the list of the longest queues, by one call in about four.
local SAMPLE_EVERY = 4 -- calls, about
local function sample_queue(block, site)
  if NOW % SAMPLE_EVERY ~= 0 then return end
  local n = call('ZCARD', KEYS[block + RETRIES])
  for p = 0, 3 do n = n + call('LLEN', KEYS[block + QUEUE + p]) end
  if n > 0 then
    call('ZADD', LONGEST, n, site)
    trim(LONGEST)
  else
    call('ZREM', LONGEST, site)
  end
end

-- write_counters writes the counters; those of the call start at ARGV[first].
local function write_counters(first, counters)
  if broken then
    for _, counts in ipairs(parts) do
      for number, n in string.gmatch(counts, '(%d+) (%-?%d+) ') do add_counter(ARGV[first + 2 * number - 2], tonumber(n)) end
    end
  else
    for a = first, first + 2 * counters - 2, 2 do add_counter(ARGV[a], tonumber(ARGV[a + 1])) end
  end
  for name, n in pairs(counter_changes) do
    if n ~= 0 then call('HINCRBY', COUNTERS, name, int(n)) end
  end
end
