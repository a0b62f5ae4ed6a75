-- marks: how full the server is and, above the marks, the bar: a link to a queue
-- as long as the bar is turned away. The longest queues come first, then, while
-- memory goes on rising, ever shorter ones, and half way to maxmemory all: the
-- rest is for new sites, retries and what else a server needs.
-- KEYS[1]  meta: pressed, from when memory was above the high mark until it is
--          below the low one; longest, the length of the longest queue that links
--          were offered to lately, and since when it stands there, ms
-- KEYS[2]  stats
-- ARGV[1]  epoch
-- ARGV[2+] where the script says: the low and the high mark, per cent of maxmemory,
--          0 = none; the longest queue of other shards of the server
-- Reply    none of its own
-- Cost     O(1), one INFO
-- Repeat   weigh reads only, remember sets

-- weigh looks at the server. was is what the last call left.
local function weigh(low, high, elsewhere)
  local info = redis.pcall('INFO', 'memory')
  local function field(name)
    if type(info) ~= 'string' then return 0 end -- asking is forbidden
    local _, at = string.find(info, '\n' .. name .. ':', 1, true)
    return at and tonumber(string.match(info, '^%d+', at + 1)) or 0
  end

  -- As Redis compares them before a write.
  local m = {}
  m.used = field('used_memory') - field('mem_not_counted_for_evict')
  m.limit = field('maxmemory')
  m.bar = math.huge
  if high == 0 then return m end

  local s = redis.call('HMGET', KEYS[1], 'pressed', 'longest', 'since')
  local was_pressed, longest, since = s[1], tonumber(s[2]), tonumber(s[3]) or 0
  m.was_pressed, m.since = was_pressed, since
  m.longest = longest or tonumber(redis.call('HGET', KEYS[2], 'queued')) or 0 -- not more than this
  if m.limit == 0 then return m end

  local full = 100 * m.used / m.limit
  m.pressed = full > high or was_pressed and full >= low
  if m.pressed then
    local above = math.min(math.max(full - high, 0) / (100 - high) * 2, 1)
    m.bar = math.max(math.floor(math.max(m.longest, elsewhere) ^ (1 - above)), 1)
  end
  return m
end

-- remember keeps what the next call weighs by; lengths are those of the queues of
-- this one. A queue that is offered no more links is forgotten by halves.
local function remember(m, lengths, now)
  local age, seen = now - m.since, 0
  for _, length in pairs(lengths) do seen = math.max(seen, length) end

  local longest
  if seen > 1.05 * m.longest or seen >= 0.9 * m.longest and age >= 1000 then
    longest = seen
  elseif age >= 10000 then
    longest = math.max(seen, math.floor(m.longest / 2))
  end
  if longest then
    redis.call('HSET', KEYS[1], 'longest', string.format('%.0f', longest), 'since', string.format('%.0f', now))
  end

  if m.pressed and not m.was_pressed then redis.call('HSET', KEYS[1], 'pressed', 1) end
  if m.was_pressed and not m.pressed then redis.call('HDEL', KEYS[1], 'pressed') end
end
