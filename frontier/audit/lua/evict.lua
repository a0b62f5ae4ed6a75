-- evict: takes an entry that nobody can read out of where it stands, and keeps
-- it in a list of such.
-- KEYS[1..9]  as in the prelude
-- KEYS[10]    that list
-- KEYS[11]    where the entry stands
-- KEYS[12]    a of its site, when it is to be fetched again
-- ARGV[1]     epoch
-- ARGV[2]     queued, waiting, again, open or dead: what stands there
-- ARGV[3]     the entry
-- ARGV[4]     its index when it is open, what it is known by when it is to be
--             fetched again
-- Reply       1 it went, 0 it was not there
-- Cost        O(place in the list)
-- Repeat      the entry is not there any more
local BROKEN, PLACE = KEYS[10], KEYS[11]
local kind, entry, index = ARGV[2], ARGV[3], ARGV[4]

try_all()
local gone
if kind == 'waiting' then
  gone = call('ZREM', PLACE, entry)
elseif kind == 'open' then
  gone = call('HGET', PLACE, index) == entry and call('HDEL', PLACE, index) or 0
elseif kind == 'again' then
  gone = call('HGET', PLACE, index) == entry and call('HDEL', PLACE, index) or 0
  if gone == 1 then call('ZREM', KEYS[12], index) end
else
  gone = call('LREM', PLACE, 1, entry)
end

if gone == 1 then
  call('RPUSH', BROKEN, entry)
  if kind == 'dead' then
    tally('dropped', 1)
  else
    tally(kind, -1)
    if kind ~= 'again' then tally('missing', 1) end -- it was done
  end
end
count()
return gone
