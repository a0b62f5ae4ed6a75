-- push: appends records to a list or stream, unless too much waits there.
--
-- KEYS[1]  list or stream
-- KEYS[2]  hash: sink -> number of its last batch
-- ARGV[1]  list or stream
-- ARGV[2]  bytes that KEYS[1] may hold
-- ARGV[3]  high watermark of memory, per cent of maxmemory; 0 for none
-- ARGV[4]  sink
-- ARGV[5]  number of the batch
-- ARGV[6+] records
-- Reply    ok; lag: KEYS[1] is too large; high: the server is over the watermark
-- Cost     O(records), one INFO; of a stream that is too large: one call a group, and
--          10,000 entries cut off
-- Repeat   finds its number in KEYS[2] and does nothing

local call = redis.call

if call('HGET', KEYS[2], ARGV[4]) == ARGV[5] then
  return 'ok'
end

local function tooLarge()
  local size = call('MEMORY', 'USAGE', KEYS[1], 'SAMPLES', 8)
  return size and size > tonumber(ARGV[2])
end

local function before(a, b) -- of IDs of entries
  local ams, aseq = string.match(a, '(%d+)-(%d+)')
  local bms, bseq = string.match(b, '(%d+)-(%d+)')
  if ams == bms then
    return tonumber(aseq) < tonumber(bseq)
  end
  return tonumber(ams) < tonumber(bms)
end

-- trim cuts off what every group of a stream has read and acknowledged.
local function trim()
  local first
  for _, group in ipairs(call('XINFO', 'GROUPS', KEYS[1])) do
    local field = {}
    for i = 1, #group, 2 do
      field[group[i]] = group[i + 1]
    end
    local id = field['last-delivered-id']
    if field['pending'] > 0 then
      id = call('XPENDING', KEYS[1], field['name'])[2]
    end
    if not first or before(id, first) then
      first = id
    end
  end
  if first then
    call('XTRIM', KEYS[1], 'MINID', '~', first, 'LIMIT', 10000)
  end
end

if tooLarge() then
  if ARGV[1] == 'stream' then
    trim()
  end
  if tooLarge() then
    return 'lag'
  end
end

local high = tonumber(ARGV[3])
if high > 0 then
  local info = call('INFO', 'memory')
  local used = tonumber(string.match(info, 'used_memory:(%d+)'))
  local max = tonumber(string.match(info, 'maxmemory:(%d+)'))
  if max > 0 and used * 100 > max * high then
    return 'high'
  end
end

-- The first write: above maxmemory it is refused, and nothing is done. It tries a right
-- that would else be missed only after records were appended.
call('HSET', KEYS[2], '', '')
call('EXPIRE', KEYS[2], 86400)
if ARGV[1] == 'list' then
  call('RPUSH', KEYS[1], unpack(ARGV, 6))
else
  for i = 6, #ARGV do
    call('XADD', KEYS[1], '*', 'record', ARGV[i])
  end
end
call('HSET', KEYS[2], ARGV[4], ARGV[5])
return 'ok'
