-- evict: moves an entry that nobody can read from its key to a list of such.
-- KEYS[1..9]  as in the prelude
-- KEYS[10]    that list
-- KEYS[11]    the key of the entry
-- KEYS[12]    a of its site, of a recrawl
-- ARGV[1]     epoch
-- ARGV[2]     queued, waiting, recrawls, open or dead: the kind of KEYS[11]
-- ARGV[3]     the entry
-- ARGV[4]     its index of an open one, its id among those of its site of a recrawl
-- Reply       1 moved, 0 it was not there
-- Cost        O(place in the list)
-- Repeat      the entry is no longer there
local BROKEN, PLACE = KEYS[10], KEYS[11]
local kind, entry, index = ARGV[2], ARGV[3], ARGV[4]

try_all()
local gone
if kind == 'waiting' then
  gone = call('ZREM', PLACE, entry)
elseif kind == 'open' then
  gone = call('HGET', PLACE, index) == entry and call('HDEL', PLACE, index) or 0
elseif kind == 'recrawls' then
  gone = call('HGET', PLACE, index) == entry and call('HDEL', PLACE, index) or 0
  if gone == 1 then call('ZREM', KEYS[12], index) end
else
  gone = call('LREM', PLACE, 1, entry)
end

if gone == 1 then
  call('RPUSH', BROKEN, entry)
  if kind == 'dead' then
    add_stat('dropped', 1)
  else
    add_stat(kind, -1)
    if kind ~= 'recrawls' then add_stat('missing', 1) end -- it was done
  end
end
write_stats()
return gone
