-- live: keeps and shows the list of programs at work on a crawl.
-- KEYS[1]  live, a zset of ids by deadline
-- KEYS[2]  what is known of each, a hash
-- ARGV[1]  id to announce or to take off the list, '' = only show it
-- ARGV[2]  ms until its deadline, 0 = take it off
-- ARGV[3]  what is known of it
-- Reply    per program that is there 3: id, ms until its deadline, what is known
-- Cost     O(programs log programs)
-- Repeat   the deadline moves on; a late copy is over by itself
local C = redis.call
local time = C('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function int(x) return string.format('%.0f', x) end

for _, id in ipairs(C('ZRANGE', KEYS[1], '-inf', int(now), 'BYSCORE', 'LIMIT', 0, 1000)) do
  C('ZREM', KEYS[1], id)
  C('HDEL', KEYS[2], id)
end
local ttl = tonumber(ARGV[2])
if ARGV[1] ~= '' then
  if ttl > 0 then
    -- A clock that was set back lets nobody live longer.
    for _, id in ipairs(C('ZRANGE', KEYS[1], '(' .. int(now + ttl), '+inf', 'BYSCORE', 'LIMIT', 0, 1000)) do
      C('ZADD', KEYS[1], int(now + ttl), id)
    end
    C('ZADD', KEYS[1], int(now + ttl), ARGV[1])
    C('HSET', KEYS[2], ARGV[1], ARGV[3])
    C('PEXPIRE', KEYS[1], ttl * 2)
    C('PEXPIRE', KEYS[2], ttl * 2)
  else
    C('ZREM', KEYS[1], ARGV[1])
    C('HDEL', KEYS[2], ARGV[1])
  end
end
local reply = {}
local all = C('ZRANGE', KEYS[1], 0, 999, 'WITHSCORES')
for i = 1, #all, 2 do
  reply[#reply + 1] = all[i]
  reply[#reply + 1] = tonumber(all[i + 1]) - now
  reply[#reply + 1] = C('HGET', KEYS[2], all[i]) or ''
end
return reply
