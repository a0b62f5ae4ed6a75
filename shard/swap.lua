-- swap: changes fields of one hash while others still are as expected.
-- KEYS[1]  the hash
-- KEYS[2..]  names that never exist: whoever has no right to them is refused
-- ARGV[1]  number of expected fields, e
-- ARGV[2..2e+1]  per expected field: name, value ('' = the field is absent)
-- ARGV[2e+2..]   per field to change: name, value ('' = it is deleted)
-- Reply    1 changed, 0 refused: something is not as expected
-- Cost     O(fields)
-- Repeat   refused, for callers change at least one field that they expect
local call = redis.call
local HASH = KEYS[1]
local LAST_EXPECTED = 1 + 2 * tonumber(ARGV[1])

for a = 2, LAST_EXPECTED, 2 do
  local name, value = ARGV[a], ARGV[a + 1]
  if (call('HGET', HASH, name) or '') ~= value then return 0 end
end

-- Rights that would be missed only after the first write.
call('HDEL', HASH, '')
call('HSET', HASH, '', '')
call('HDEL', HASH, '')

for a = LAST_EXPECTED + 1, #ARGV, 2 do
  local name, value = ARGV[a], ARGV[a + 1]
  if value == '' then
    call('HDEL', HASH, name)
  else
    call('HSET', HASH, name, value)
  end
end
return 1
