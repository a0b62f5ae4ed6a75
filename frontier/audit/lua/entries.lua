-- entries: reads the queued, waiting and recrawl entries of as many sites as fit in one
-- call.
-- KEYS[1..9]  as in the prelude
-- KEYS[10..]  per site 8: its block of the prelude
-- ARGV[1]     epoch
-- ARGV[2]     entries that a call reads
-- Reply       per site, up to the first that has too many: {entries of q 0 to 3, then
--             of w, then fields and values of e}. Nothing when the first has too many by itself
-- Cost        O(sites + entries)
-- Repeat      reads only
local room = tonumber(ARGV[2])
local reply = {}
for block = 10, #KEYS, 8 do
  local lengths, waiting, recrawls = {}, call('ZCARD', KEYS[block + RETRIES]), call('HLEN', KEYS[block + ENTRIES])
  local all = waiting + recrawls
  for p = 0, 3 do
    lengths[p] = call('LLEN', KEYS[block + QUEUE + p])
    all = all + lengths[p]
  end
  if all > room then break end
  room = room - all

  local site = {}
  for p = 0, 3 do
    site[p + 1] = lengths[p] > 0 and call('LRANGE', KEYS[block + QUEUE + p], 0, -1) or {}
  end
  site[5] = waiting > 0 and call('ZRANGE', KEYS[block + RETRIES], 0, -1) or {}
  site[6] = recrawls > 0 and call('HGETALL', KEYS[block + ENTRIES]) or {}
  reply[#reply + 1] = site
end
return reply
