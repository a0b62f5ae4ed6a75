-- setrules: stores the robots.txt rules of origins for the whole fleet.
-- KEYS[1..9]   as in the prelude
-- KEYS[10..]   per origin the r of its site
-- ARGV[1]      epoch
-- ARGV[2]      bytes that the r of a site may take. A site may have any number of
--              origins: where theirs take more, all are dropped and fetched anew
-- ARGV[3..]    per origin 3: its field (scheme, host and port), ms that its rules
--              are valid, the rules
-- Reply        1, or 0 when there was no room in Redis: nothing is stored
-- Cost         O(1) per origin; dropped rules are freed in the background
-- Repeat       sets again
-- Rights that would be missed only after the first write, which is refused where
-- there is no room.
call('UNLINK', NEVER)
call('PEXPIRE', NEVER, 1)
local first = redis.pcall('HSET', META, 'epoch', epoch)
if type(first) == 'table' then return string.find(first.err, 'OOM', 1, true) and 0 or first end

local most = tonumber(ARGV[2])
local k = 10
for a = 3, #ARGV, 3 do
  local key, origin, valid, rules = KEYS[k], ARGV[a], tonumber(ARGV[a + 1]), ARGV[a + 2]
  local value = int(NOW + valid) .. ' ' .. rules
  local before = call('HMGET', key, origin, 'bytes')
  local is_new = not before[2]
  local bytes = (tonumber(before[2]) or 0) + #value - #(before[1] or '')
  if not before[1] then bytes = bytes + #origin end

  if bytes > most then
    call('UNLINK', key)
    bytes = #origin + #value
    is_new = true
  end
  call('HSET', key, origin, value, 'bytes', int(bytes))

  -- The longest of its rules decides how long the key stays, in the server's time.
  if is_new then
    call('PEXPIRE', key, int(valid))
  else
    call('PEXPIRE', key, int(valid), 'GT')
  end
  k = k + 1
end
return 1
