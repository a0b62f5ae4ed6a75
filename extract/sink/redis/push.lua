-- push: appends records to a list or stream, unless too much waits there.
--
-- KEYS[1]  list or stream
-- KEYS[2]  hash: sink -> number of its last batch
-- ARGV[1]  list or stream
-- ARGV[2]  bytes that KEYS[1] may hold
-- ARGV[3]  high mark of memory, per cent of maxmemory; 0 for none
-- ARGV[4]  sink
-- ARGV[5]  number of the batch
-- ARGV[6+] records
-- Reply    ok; lag: KEYS[1] holds too much; high: the server is above the mark
-- Cost     O(records), one INFO
-- Repeat   finds its number in KEYS[2] and does nothing

local call = redis.call

if call('HGET', KEYS[2], ARGV[4]) == ARGV[5] then
  return 'ok'
end

local held = call('MEMORY', 'USAGE', KEYS[1], 'SAMPLES', 8)
if held and held > tonumber(ARGV[2]) then
  return 'lag'
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

-- The first write: above maxmemory it is refused, and nothing is done.
if ARGV[1] == 'list' then
  call('RPUSH', KEYS[1], unpack(ARGV, 6))
else
  for i = 6, #ARGV do
    call('XADD', KEYS[1], '*', 'record', ARGV[i])
  end
end
call('HSET', KEYS[2], ARGV[4], ARGV[5])
call('EXPIRE', KEYS[2], 86400)
return 'ok'
