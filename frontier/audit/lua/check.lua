-- check: reads what the ready rule depends on, of some sites at one moment.
-- KEYS[1..9]  as in the prelude
-- KEYS[10..]  per site 6: its block of the prelude
-- ARGV[1]     epoch
-- ARGV[2..]   the sites
-- Reply       {server ms, whether rules of sites bind, per site: {clock, token,
--             paused, blocked, lengths of q 0 to 3 and w, first retry, scores in
--             ready:0 to ready:3 and held, deadline of its token, cap}}; '' = none
-- Cost        O(sites)
-- Repeat      reads only
local reply = {int(NOW), META[6] or ''}
for i = 2, #ARGV do
  local b, site = 10 + 6 * (i - 2), ARGV[i]
  local s = C('HMGET', KEYS[b], 'clock', 'token', 'paused', 'blocked')
  for q = 1, 4 do s[4 + q] = C('LLEN', KEYS[b + q]) end
  s[9] = C('ZCARD', KEYS[b + 5])
  s[10] = C('ZRANGE', KEYS[b + 5], 0, 0, 'WITHSCORES')[2]
  for z = 4, HELD do s[7 + z] = C('ZSCORE', KEYS[z], site) end
  s[16] = s[2] and C('ZSCORE', KEYS[3], s[2] .. ' ' .. site)
  s[17] = C('HGET', KEYS[b], 'cap')
  for x = 1, 17 do s[x] = s[x] or '' end
  reply[i + 1] = s
end
return reply
