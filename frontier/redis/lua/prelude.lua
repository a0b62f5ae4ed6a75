-- prelude: what every script of a shard starts with. It checks the epoch, reads
-- the clock and defines the ready rule: which zset a site stands in, and since
-- when. A site's block of keys, at b, is: s, q of class 0 to 3, w.
-- KEYS[1..3]  meta, stats, leases
-- KEYS[4..8]  ready:0 to ready:3, held
-- KEYS[9]     never: a name that no key ever has. While a slot moves, Redis runs
--             a script on a node that has all of its declared keys, and aborts
--             it in the middle if it empties one and looks at it again. With a
--             key that is always missing no script runs until the slot has moved.
-- ARGV[1]     epoch of the crawl that the caller works on
-- Reply       '!stale' if the shard belongs to another epoch, else the script's
-- Cost        O(1); place and rise O(log sites of the shard)
-- Repeat      writes nothing by itself; place and rise set, they do not add
local C, KEYS, ARGV = redis.call, KEYS, ARGV
local META = C('HMGET', KEYS[1], 'epoch', 'rev', 'paused', 'tick', 'quiet', 'ruled', 'turn', 'ahead')
if META[1] ~= ARGV[1] then return '!stale' end
local TIME = C('TIME')
local TICK, AHEAD = tonumber(META[4]) or 0, tonumber(META[8]) or 0
-- Milliseconds: what the clock shows, AHEAD of the server's, and the time, never behind the last tick.
local CLOCK = TIME[1] * 1000 + math.floor(TIME[2] / 1000) + AHEAD
local NOW = math.max(CLOCK, TICK)
local HELD, DAY = 8, 86400000

-- int formats a whole number as every server and client reads it.
local function int(x) return string.format('%.0f', x) end

-- class is the class of an entry, 0 to 3.
local function class(entry) return string.byte(entry, 2) - 48 end

-- tally collects changes of counters, count writes them.
local DELTA = {}
local function tally(name, n) DELTA[name] = (DELTA[name] or 0) + n end
local function count()
  for name, n in pairs(DELTA) do
    if n ~= 0 then C('HINCRBY', KEYS[2], name, n) end
  end
end

-- place puts the site with the block b where the ready rule wants it. absent
-- says that the site stands in none of the zsets, as one that was lent.
local function place(b, site, absent)
  local s = C('HMGET', KEYS[b], 'clock', 'token', 'paused')
  local zset, due
  if not s[2] then
    for p = 0, 3 do
      if C('EXISTS', KEYS[b + 1 + p]) == 1 then zset, due = 4 + p, NOW break end
    end
    if not zset then
      local first = C('ZRANGE', KEYS[b + 5], 0, 0, 'WITHSCORES')
      if first[1] then zset, due = 7, tonumber(first[2]) end
    end
    if zset and s[3] then zset = HELD end
  end
  if not absent then
    for z = 4, HELD do
      if z ~= zset then C('ZREM', KEYS[z], site) end
    end
  end
  if zset then C('ZADD', KEYS[zset], int(math.max(tonumber(s[1]) or 0, due)), site) end
end

-- rise is the ready rule for a site whose list of class p was empty and got
-- entries; s holds its clock, token and paused. It needs no other key of it.
local SOME = {}
local function rise(p, site, s)
  if s[2] then return end
  local zset = 4 + p
  if s[3] then
    zset = HELD
  else
    for z = 4, 7 do
      if SOME[z] == nil then SOME[z] = C('EXISTS', KEYS[z]) == 1 end
      if SOME[z] then
        if z < zset and C('ZSCORE', KEYS[z], site) then return end
        if z > zset and C('ZREM', KEYS[z], site) == 1 then break end
      end
    end
    SOME[zset] = true
  end
  C('ZADD', KEYS[zset], int(math.max(tonumber(s[1]) or 0, NOW)), site)
end

-- expire lets the s at b go a day after its clock, in the server's time, unless it holds what stays.
local function expire(b, clock)
  local s = C('HMGET', KEYS[b], 'token', 'n', 'cap', 'blocked', 'override', 'paused')
  if s[1] or s[2] or s[3] or s[4] or s[5] or s[6] then
    C('PERSIST', KEYS[b])
  else
    C('PEXPIREAT', KEYS[b], int(math.max(clock, NOW) + DAY - AHEAD))
  end
end

-- bury adds a letter to a dead list that may hold so many.
local function bury(list, letter, most)
  local n = C('RPUSH', list, letter)
  if n > most then C('LTRIM', list, n - most, -1) tally('dropped', n - most) end
  tally('dead', 1)
  tally(string.match(list, '}:(dead:.*)$'), 1)
end
