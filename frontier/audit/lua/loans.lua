-- loans: reads what belongs to some leases at one moment.
-- KEYS[1..9]  as in the prelude
-- KEYS[10..]  per lease 2: s of its site, v of its token
-- ARGV[1]     epoch
-- ARGV[2..]   the leases, 'token site' each
-- Reply       per lease {deadline, token of its site, URLs that are open}; '' = none
-- Cost        O(leases)
-- Repeat      reads only
local reply = {}
for i = 2, #ARGV do
  local at = 6 + 2 * i
  reply[i - 1] = {
    C('ZSCORE', KEYS[3], ARGV[i]) or '', C('HGET', KEYS[at], 'token') or '', C('HLEN', KEYS[at + 1])}
end
return reply
