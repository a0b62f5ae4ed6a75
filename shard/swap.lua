-- swap: changes fields of one hash while others still are as expected.
-- KEYS[1]  the hash
-- ARGV[1]  number of expected fields, e
-- ARGV[2..2e+1]  per expected field: name, value ('' = the field is absent)
-- ARGV[2e+2..]   per field to change: name, value ('' = it is deleted)
-- Reply    1 changed, 0 refused: something is not as expected
-- Cost     O(fields)
-- Repeat   refused, for callers change at least one field that they expect
local C = redis.call
local last = 1 + 2 * tonumber(ARGV[1])
for i = 2, last, 2 do
  if (C('HGET', KEYS[1], ARGV[i]) or '') ~= ARGV[i + 1] then return 0 end
end
for i = last + 1, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    C('HDEL', KEYS[1], ARGV[i])
  else
    C('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  end
end
return 1
