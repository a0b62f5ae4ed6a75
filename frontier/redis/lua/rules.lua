-- rules: reads the stored robots.txt rules of origins.
-- KEYS[1..9]   as in the prelude
-- KEYS[10..]   per origin the r of its site
-- ARGV[1]      epoch
-- ARGV[2..]    per origin its field: scheme, host and port
-- Reply        per origin 2: ms that its rules are valid, 0 = none are stored; the rules
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
