-- stats: counts a shard.
-- KEYS[1]     meta
-- KEYS[2]     stats
-- KEYS[3]     leases
-- KEYS[4..7]  ready:0 to ready:3
-- KEYS[8]     held
-- ARGV[1]     epoch
-- ARGV[2]     the memory marks, as in marks.lua
-- Reply       '!stale' if the shard belongs to another epoch; else {sites
--             ready, sites held, leases, paused 1 or 0, the fields of stats,
--             {bytes that the server uses, its maxmemory, 1 above the marks or 0,
--             the bar, 0 = none, the longest queue, 0 = not known}}
-- Cost        O(fields of stats)
-- Repeat      reads only
local C = redis.call
local meta = C('HMGET', KEYS[1], 'epoch', 'paused')
if meta[1] ~= ARGV[1] then return '!stale' end
local ready = 0
for z = 4, 7 do ready = ready + C('ZCARD', KEYS[z]) end
local m = weigh(ARGV[2])
local memory = {m.used, m.limit, m.pressed and 1 or 0, m.bar < huge and m.bar or 0, m.longest or 0}
return {ready, C('ZCARD', KEYS[8]), C('ZCARD', KEYS[3]), meta[2] and 1 or 0, C('HGETALL', KEYS[2]), memory}
