-- evict: takes an entry that nobody can read out of where it stands, and keeps
-- it in a list of such.
-- KEYS[1..9]  as in the prelude
-- KEYS[10]    that list
-- KEYS[11]    where the entry stands
-- ARGV[1]     epoch
-- ARGV[2]     queued, waiting, open or dead: what stands there
-- ARGV[3]     the entry
-- ARGV[4]     its index, when it is open
-- Reply       1 it went, 0 it was not there
-- Cost        O(place in the list)
-- Repeat      the entry is not there any more
local BROKEN, PLACE = KEYS[10], KEYS[11]
local kind, entry, index = ARGV[2], ARGV[3], ARGV[4]

local gone
if kind == 'waiting' then
  gone = call('ZREM', PLACE, entry)
elseif kind == 'open' then
  gone = call('HGET', PLACE, index) == entry and call('HDEL', PLACE, index) or 0
else
  gone = call('LREM', PLACE, 1, entry)
end

if gone == 1 then
  call('RPUSH', BROKEN, entry)
  if kind == 'dead' then
    tally('dropped', 1)
  else
    tally(kind, -1)
    tally('missing', 1)
  end
end
count()
return gone
