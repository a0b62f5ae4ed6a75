-- sums: what settle sums up, for reports: counts of the shard, what became of its
-- first seeds, and of each site its pages, its dead and the last answer; lists of the
-- first sites by these. A settlement counts whole, when all of its outcomes take
-- effect, or not at all.
-- KEYS[10]  the sums, a hash of counters
-- KEYS[11]  what became of seeds, a hash; note puts them there
-- KEYS[12..14] the first sites by pages, by dead URLs and by queue, zsets
-- ARGV[+]   at the end of a settlement: what came of the last request, '' = nothing;
--           pages; dead URLs; how many seeds, and per seed its URL and its fate; and
--           'number count ' for each counter of the call that it adds to
-- Reply     none of its own
-- Cost      O(counters) a settlement, one HINCRBY for each name of a call; 3 us more
--           where a site is among the first, or looked at for the list by queue
-- Repeat    the outcomes are gone then, and nothing is counted
local SUMS, SEEDS, PAGES, DEADEST, LONGEST = KEYS[10], KEYS[11], KEYS[12], KEYS[13], KEYS[14]
local TOP, STEP, SEEDS_KEPT = 100, 16, 100 -- as TopKept, TopStep and SeedsKept in Go

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

-- tally_site notes what came of a site, in its s, which is there.
local function tally_site(block, site, last, pages, dead)
  if last == '' and pages + dead == 0 then return end
  local got = call('HGET', KEYS[block], 'got') or ''
  local had_pages, had_dead, since, before = string.match(got, '^(%d+) (%d+) (%d+) (.*)$')
  since = since or int(math.floor(NOW / 1000))
  if last == '' then last = before or '' end
  local all_pages, all_dead = (had_pages or 0) + pages, (had_dead or 0) + dead

  call('HSET', KEYS[block], 'got', all_pages .. ' ' .. all_dead .. ' ' .. since .. ' ' .. last)
  enlist(PAGES, site, all_pages, pages)
  enlist(DEADEST, site, all_dead, dead)
  if before ~= last and last ~= '' then
    sum('site:' .. class_of(last), 1)
    if before and before ~= '' then sum('site:' .. class_of(before), -1) end
  end
end

-- parts is what whole settlements add to the counters of the call; unless any is
-- broken, together they are its totals.
local parts, broken = {}, false

-- take_sums reads the end of a settlement, and counts it if it is whole.
local function take_sums(next_arg, whole, there, block, site)
  local last, pages, dead = next_arg(), tonumber(next_arg()), tonumber(next_arg())
  for _ = 1, tonumber(next_arg()) do
    local url, fate = next_arg(), next_arg()
    if whole and (call('HLEN', SEEDS) < SEEDS_KEPT or call('HEXISTS', SEEDS, url) == 1) then
      call('HSET', SEEDS, url, fate)
    end
  end
  local counts = next_arg()
  if whole then parts[#parts + 1] = counts else broken = true end
  if whole and there then tally_site(block, site, last, pages, dead) end
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
