-- stats: counts a shard.
-- KEYS[1]     meta
-- KEYS[2]     stats
-- KEYS[3]     leases
-- KEYS[4..7]  ready:0 to ready:3
-- KEYS[8]     held
-- ARGV[1]     epoch
-- ARGV[2..4]  the memory marks, as in marks.lua
-- Reply       error STALE if the shard belongs to another epoch, EMPTY if it has
--             none; else {sites
--             ready, sites held, leases, paused 1 or 0, the fields of stats,
--             {bytes that the server uses, its maxmemory, 1 above the marks or 0,
--             the bar, 0 = none, the longest queue, 0 = not known}}
-- Cost        O(fields of stats)
-- Repeat      reads only
local call = redis.call
local META, STATS, LEASES, HELD = KEYS[1], KEYS[2], KEYS[3], KEYS[8]
local low, high, elsewhere = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

local meta = call('HMGET', META, 'epoch', 'paused')
local epoch, paused = meta[1], meta[2]
if not epoch then return redis.error_reply('EMPTY the shard has no epoch') end
if epoch ~= ARGV[1] then return redis.error_reply('STALE another creation of the crawl') end

local ready = 0
for z = 4, 7 do ready = ready + call('ZCARD', KEYS[z]) end
local held, leases = call('ZCARD', HELD), call('ZCARD', LEASES)

local m = weigh(low, high, elsewhere)
local bar = m.bar < math.huge and m.bar or 0
local memory = {m.used, m.limit, m.pressed and 1 or 0, bar, m.longest or 0}
return {ready, held, leases, paused and 1 or 0, call('HGETALL', STATS), memory}
