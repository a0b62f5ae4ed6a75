-- watermarks: how full the server is and, over the high watermark, the cutoff: links to
-- a queue of that length or more are turned away. The cutoff starts at the longest
-- queue and falls as memory rises. Half way from the watermark to maxmemory it is 1:
-- the rest is for new sites, retries and what else a server needs.
-- KEYS[1]  meta: over_watermark, set from when memory was above the high watermark
--          until it is below the low one; longest, the length of the longest queue
--          that links were offered to lately; since, when that was written, ms
-- KEYS[2]  stats
-- ARGV[1]  epoch
-- ARGV[2+] where the script says: the low and the high watermark, per cent of maxmemory,
--          0 = none; the longest queue of other shards of the server
-- Reply    none of its own
-- Cost     O(1), one INFO
-- Repeat   read_memory reads only, keep_watermark sets

-- read_memory reads how full the server is, and what the last call kept.
local function read_memory(low, high, others_longest)
  local info = redis.pcall('INFO', 'memory')
  local function field(name)
    if type(info) ~= 'string' then return 0 end -- INFO is forbidden
    local _, at = string.find(info, '\n' .. name .. ':', 1, true)
    return at and tonumber(string.match(info, '^%d+', at + 1)) or 0
  end

  -- As Redis compares them before a write.
  local m = {}
  m.used = field('used_memory') - field('mem_not_counted_for_evict')
  m.limit = field('maxmemory')
  m.cutoff = math.huge
  if high == 0 then return m end

  local s = redis.call('HMGET', KEYS[1], 'over_watermark', 'longest', 'since')
  local was_over, longest, kept_at = s[1], tonumber(s[2]), tonumber(s[3]) or 0
  m.was_over, m.kept_at = was_over, kept_at
  m.longest = longest or tonumber(redis.call('HGET', KEYS[2], 'queued')) or 0 -- not more than this
  if m.limit == 0 then return m end

  local full = 100 * m.used / m.limit
  m.over = full > high or was_over and full >= low
  if m.over then
    local above = math.min(math.max(full - high, 0) / (100 - high) * 2, 1)
    m.cutoff = math.max(math.floor(math.max(m.longest, others_longest) ^ (1 - above)), 1)
  end
  return m
end

-- keep_watermark keeps what the next call reads. lengths are those of the queues of
-- this call. Where no queue is as long any more, the length halves every ten seconds.
local function keep_watermark(m, lengths, now)
  local age, seen = now - m.kept_at, 0
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

  if m.over and not m.was_over then redis.call('HSET', KEYS[1], 'over_watermark', 1) end
  if m.was_over and not m.over then redis.call('HDEL', KEYS[1], 'over_watermark') end
end
