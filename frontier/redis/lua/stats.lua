-- stats: counts a shard.
-- KEYS[1]     meta
-- KEYS[2]     stats
-- KEYS[3]     leases
-- KEYS[4..7]  ready:0 to ready:3
-- KEYS[8]     ready:paused
-- KEYS[9]     walled
-- ARGV[1]     epoch
-- ARGV[2..4]  the memory watermarks, as in watermarks.lua
-- Reply       error STALE if the shard belongs to another epoch, EMPTY if it has
--             none; else {sites ready, sites ready but paused, leases, paused 1 or 0,
--             sites that the fleet backs off from for walls now, the fields of stats, {bytes that the server uses, its maxmemory, 1 over
--             the watermark or 0, the cutoff, 0 = none, the longest queue, 0 = unknown}}
-- Cost        O(fields of stats)
-- Repeat      reads only
local call = redis.call
local META, STATS, LEASES, PAUSED, WALLED = KEYS[1], KEYS[2], KEYS[3], KEYS[8], KEYS[9]
local low, high, others_longest = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

local meta = call('HMGET', META, 'epoch', 'paused', 'tick')
local epoch, paused, tick = meta[1], meta[2], meta[3] or 0
if not epoch then return redis.error_reply('EMPTY the shard has no epoch') end
if epoch ~= ARGV[1] then return redis.error_reply('STALE another creation of the crawl') end

local ready = 0
for z = 4, 7 do ready = ready + call('ZCARD', KEYS[z]) end
local paused_ready, leases, walled = call('ZCARD', PAUSED), call('ZCARD', LEASES), call('ZCOUNT', WALLED, '(' .. tick, '+inf')

local m = read_memory(low, high, others_longest)
local cutoff = m.cutoff < math.huge and m.cutoff or 0
local memory = {m.used, m.limit, m.over and 1 or 0, cutoff, m.longest or 0}
return {ready, paused_ready, leases, paused and 1 or 0, walled, call('HGETALL', STATS), memory}
