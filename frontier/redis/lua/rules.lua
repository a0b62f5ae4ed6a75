-- rules: reads what was kept of the robots.txt of origins, one after the other.
-- KEYS[1..9]   as in the prelude
-- KEYS[10..]   per origin the r of its site
-- ARGV[1]      epoch
-- ARGV[2..]    per origin its field: scheme, host and port
-- Reply        per origin 2: ms that its rules hold, 0 = none are there; the rules
-- Cost         O(1) per origin
-- Repeat       reads only
local reply = {}
for i = 1, #ARGV - 1 do
  local key, origin = KEYS[9 + i], ARGV[1 + i]
  local stored = call('HGET', key, origin)
  local until_ms, rules = string.match(stored or '', '^(%d+) (.*)$')
  local left = until_ms and math.max(0, until_ms - NOW) or 0

  reply[#reply + 1] = left
  reply[#reply + 1] = left > 0 and rules or ''
end
return reply
