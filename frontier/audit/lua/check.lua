-- check: reads what the ready rule depends on, of some sites at one moment.
-- KEYS[1..9]  as in the prelude
-- KEYS[10..]  per site 8: its block of the prelude
-- ARGV[1]     epoch
-- ARGV[2..]   the sites
-- Reply       {server ms, whether rules of sites bind, per site: {clock, token,
--             paused, blocked, lengths of q 0 to 3, w and a, the first time in w and
--             a, scores in ready:0 to ready:3 and ready:paused, deadline of its token, cap,
--             length of e}}; '' = none
-- Cost        O(sites)
-- Repeat      reads only
local FIRST_SITE = 2
local reply = {int(NOW), ruled or ''}
local block = 10
for a = FIRST_SITE, #ARGV do
  local site = ARGV[a]
  local s = call('HMGET', KEYS[block], 'clock', 'token', 'paused', 'blocked', 'cap')
  local clock, token, is_paused, blocked, cap = s[1], s[2], s[3], s[4], s[5]

  local state = {clock or '', token or '', is_paused or '', blocked or ''}
  for p = 0, 3 do state[#state + 1] = call('LLEN', KEYS[block + QUEUE + p]) end
  for w = RETRIES, RECRAWLS do state[#state + 1] = call('ZCARD', KEYS[block + w]) end
  for w = RETRIES, RECRAWLS do state[#state + 1] = call('ZRANGE', KEYS[block + w], 0, 0, 'WITHSCORES')[2] or '' end
  for z = READY, PAUSED do state[#state + 1] = call('ZSCORE', KEYS[z], site) or '' end
  state[#state + 1] = token and call('ZSCORE', LEASES, token .. ' ' .. site) or ''
  state[#state + 1] = cap or ''
  state[#state + 1] = call('HLEN', KEYS[block + ENTRIES])

  reply[#reply + 1] = state
  block = block + 8
end
return reply
