-- leases: reads the state of some leases at one moment.
-- KEYS[1..9]  as in the prelude
-- KEYS[10..]  per lease 2: s of its site, v of its token
-- ARGV[1]     epoch
-- ARGV[2..]   the leases, 'token site' each
-- Reply       per lease {deadline, token of its site, URLs that are open}; '' = none
-- Cost        O(leases)
-- Repeat      reads only
local reply = {}
local block = 10
for a = 2, #ARGV do
  local member = ARGV[a]
  local deadline = call('ZSCORE', LEASES, member)
  local token = call('HGET', KEYS[block], 'token')
  local open = call('HLEN', KEYS[block + 1])
  reply[#reply + 1] = {deadline or '', token or '', open}
  block = block + 2
end
return reply
