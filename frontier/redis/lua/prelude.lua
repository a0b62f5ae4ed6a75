-- prelude: what every script of a shard starts with. It checks the epoch, reads
-- the clock and defines the ready rule: which zset has a site, and since
-- when.
-- KEYS[1..3]  meta, stats, leases
-- KEYS[4..8]  ready:0 to ready:3, ready:paused
-- KEYS[9]     a name that no key ever has. While a slot moves, Redis runs a script
--             on a node that has all of its declared keys, and aborts it in the
--             middle if it empties one and looks at it again. With a key that is
--             always missing no script runs until the slot has moved.
-- ARGV[1]     epoch of the crawl that the caller works on
-- Reply       error STALE if the shard belongs to another epoch, EMPTY if it has
--             none, else the script's
-- Cost        O(1); place_site and promote_site O(log sites of the shard)
-- Repeat      writes nothing by itself; place_site and promote_site set, they do not add
local call, KEYS, ARGV = redis.call, KEYS, ARGV -- locals are faster than globals
local META, STATS, LEASES, NEVER = KEYS[1], KEYS[2], KEYS[3], KEYS[9]
local READY, PAUSED = 4, 8 -- KEYS[READY + p] is ready of class p

-- A site's block of keys starts with its s. KEYS[block + QUEUE + p] is its queue
-- of class p, KEYS[block + RETRIES] its w. KEYS[block + RECRAWLS], its a, has the time
-- of each recrawl, and KEYS[block + ENTRIES], its e, the entry.
-- KEYS[block + VISIT] is the v of a token.
local QUEUE, RETRIES, RECRAWLS, ENTRIES, VISIT = 1, 5, 6, 7, 8
local DAY = 86400000 -- ms

local meta = call('HMGET', META, 'epoch', 'rev', 'paused', 'tick', 'quiet', 'ruled', 'round', 'ahead', 'keys', 'heavy')
local epoch, rev, paused = meta[1], meta[2], meta[3]
local tick, quiet = tonumber(meta[4]) or 0, tonumber(meta[5]) or 0
local ruled, round, ahead, keys, heavy = meta[6], tonumber(meta[7]) or 0, tonumber(meta[8]) or 0, meta[9], meta[10]
if not epoch then return redis.error_reply('EMPTY the shard has no epoch') end
if epoch ~= ARGV[1] then return redis.error_reply('STALE another creation of the crawl') end

-- CLOCK is what the clock shows, ms, ahead of the server's where that was set
-- back. NOW is the time: never behind the last tick.
local time = call('TIME')
local CLOCK = time[1] * 1000 + math.floor(time[2] / 1000) + ahead
local NOW = math.max(CLOCK, tick)

-- int formats a whole number as every server and client reads it. A script that
-- hands a number to a command pays for all of its 17 digits.
local function int(x) return string.format('%d', x) end

-- An entry starts with its version, its class, and how often its fetcher was lost.
local function class(entry) return string.byte(entry, 2) - 48 end
local function losses(entry) return string.byte(entry, 3) - 48 end

-- add_stat collects changes of stats, write_stats writes them.
local stat_changes = {}
local function add_stat(name, n) stat_changes[name] = (stat_changes[name] or 0) + n end
local function write_stats()
  for name, n in pairs(stat_changes) do
    if n ~= 0 then call('HINCRBY', STATS, name, n) end
  end
end

-- place_site puts a site where the ready rule wants it. absent: the site is in none of
-- the zsets, as one that was leased. s is its clock, token, paused and auth, where the
-- caller knows them. Credentials stay while there is work. kept: for so many ms from
-- its clock the site is due for nobody, if it then has URLs that are. It returns class
-- and ticket of a site that is kept.
local function place_site(block, site, absent, s, kept)
  s = s or call('HMGET', KEYS[block], 'clock', 'token', 'paused', 'auth')
  local clock, token, is_paused, auth = tonumber(s[1]) or 0, s[2], s[3], s[4]

  local zset, due
  if not token and call('EXISTS', unpack(KEYS, block + QUEUE, block + RECRAWLS)) > 0 then -- most that come here have nothing left
    for p = 0, 3 do
      if call('EXISTS', KEYS[block + QUEUE + p]) == 1 then
        zset, due = READY + p, NOW
        break
      end
    end
    for waits = RETRIES, zset and 0 or RECRAWLS do
      local first = call('ZRANGE', KEYS[block + waits], 0, 0, 'WITHSCORES')
      if first[1] then
        zset, due = READY + 3, math.min(due or math.huge, tonumber(first[2]))
      end
    end
    if zset and is_paused then zset = PAUSED end
    if zset and auth then call('PERSIST', KEYS[block]) end
  end

  if not absent then
    for z = READY, PAUSED do
      if z ~= zset then call('ZREM', KEYS[z], site) end
    end
  end
  if kept and zset and zset ~= PAUSED and due <= clock then
    local ticket = int(clock + kept) .. '.5'
    call('ZADD', KEYS[zset], ticket, site)
    return zset - READY, ticket
  end
  if zset then call('ZADD', KEYS[zset], int(math.max(clock, due)), site) end
end

-- promote_site is the ready rule for a site whose queue of class p was empty and got
-- entries. Of the site it needs only what its s has.
local zset_in_use = {} -- by zset: whether it has members
local function promote_site(p, site, clock, token, is_paused)
  if token then return end
  local zset = is_paused and PAUSED or READY + p
  if not is_paused then
    for z = READY, READY + 3 do
      if zset_in_use[z] == nil then zset_in_use[z] = call('EXISTS', KEYS[z]) == 1 end
      if zset_in_use[z] then
        if z < zset and call('ZSCORE', KEYS[z], site) then return end -- it has better work
        if z > zset and call('ZREM', KEYS[z], site) == 1 then break end
      end
    end
    zset_in_use[zset] = true
  end
  call('ZADD', KEYS[zset], int(math.max(clock, NOW)), site)
end

-- STAYS are the fields that keep the s of a site, beside its token.
local STAYS = {'n', 'cap', 'blocked', 'override', 'paused', 'dropped'}

-- expire_site lets the s of a site expire a day after its clock, in the server's time,
-- unless it has fields that stay (the caller may know), or credentials and work.
local function expire_site(block, clock, stays)
  if stays == nil then
    local s = call('HMGET', KEYS[block], 'token', 'auth', unpack(STAYS))
    stays = s[1] or s[3] or s[4] or s[5] or s[6] or s[7] or s[8]
      or s[2] and call('EXISTS', unpack(KEYS, block + QUEUE, block + RECRAWLS)) > 0
  end
  if stays then
    call('PERSIST', KEYS[block])
  else
    call('PEXPIREAT', KEYS[block], int(math.max(clock, NOW) + DAY - ahead))
  end
end

-- free_site ends the lease of a site. No request to it starts before clock.
local function free_site(block, clock)
  call('HDEL', KEYS[block], 'token')
  call('HSET', KEYS[block], 'clock', int(clock))
  expire_site(block, clock)
end

-- dead_letter appends an element to a dead list of at most so many.
local function dead_letter(list, element, most)
  local n = call('RPUSH', list, element)
  if n > most then
    call('LTRIM', list, n - most, -1)
    add_stat('dropped', n - most)
  end
  add_stat('dead', 1)
  add_stat(string.match(list, '}:(dead:.*)$'), 1)
end
