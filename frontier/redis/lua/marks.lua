-- marks: how full the server is and, above the marks, the bar: a link to a queue
-- as long as the bar is turned away. The longest queues come first, then, while
-- memory goes on rising, ever shorter ones, and half way to maxmemory all: the
-- rest is for new sites, retries and what else a server needs.
-- KEYS[1]  meta: pressed, from when memory was above the high mark until it is
--          below the low one; longest, the length of the longest queue that links
--          were offered to lately, and since when it stands there, ms
-- KEYS[2]  stats
-- ARGV[1]  epoch; the script says where its marks are
-- Reply    none of its own
-- Cost     O(1), one INFO
-- Repeat   weigh reads only, remember sets
local huge = math.huge

-- weigh looks at the server. marks is '' for none, else 2 bytes, low and high in
-- per cent of maxmemory, and 4, the longest queue of other shards of the server.
local function weigh(marks)
  local info = redis.pcall('INFO', 'memory')
  local function field(name)
    if type(info) ~= 'string' then return 0 end -- asking is forbidden
    local _, at = string.find(info, '\n' .. name .. ':', 1, true)
    return at and tonumber(string.match(info, '^%d+', at + 1)) or 0
  end
  -- As Redis compares them before a write.
  local m = {used = field('used_memory') - field('mem_not_counted_for_evict'), limit = field('maxmemory'), bar = huge}
  if marks == '' then return m end
  local was = redis.call('HMGET', KEYS[1], 'pressed', 'longest', 'since')
  m.was, m.longest, m.since = was[1], tonumber(was[2]), tonumber(was[3]) or 0
  if not m.longest then m.longest = tonumber(redis.call('HGET', KEYS[2], 'queued')) or 0 end -- not more than this
  if m.limit == 0 then return m end
  local low, high, elsewhere = struct.unpack('>BBI4', marks)
  local full = 100 * m.used / m.limit
  m.pressed = full > high or m.was and full >= low
  if m.pressed then
    local above = math.min(math.max(full - high, 0) / (100 - high) * 2, 1)
    m.bar = math.max(math.floor(math.max(m.longest, elsewhere) ^ (1 - above)), 1)
  end
  return m
end

-- remember keeps what the next call weighs by; lens are the lengths of the queues
-- of this one. A queue that is offered no more links is forgotten by halves.
local function remember(m, lens, now)
  local age, seen, longest = now - m.since, 0, nil
  for _, len in pairs(lens) do seen = math.max(seen, len) end
  if seen > 1.05 * m.longest or seen >= 0.9 * m.longest and age >= 1000 then
    longest = seen
  elseif age >= 10000 then
    longest = math.max(seen, math.floor(m.longest / 2))
  end
  if longest then redis.call('HSET', KEYS[1], 'longest', string.format('%.0f', longest), 'since', string.format('%.0f', now)) end
  if m.pressed and not m.was then redis.call('HSET', KEYS[1], 'pressed', 1) end
  if m.was and not m.pressed then redis.call('HDEL', KEYS[1], 'pressed') end
end
