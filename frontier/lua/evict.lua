-- evict: takes entries that nobody can read out of where they stand, and keeps
-- them in a list of their own.
-- KEYS[1..9]  as in the prelude
-- KEYS[10]    that list
-- KEYS[11..]  per entry: where it stands
-- ARGV[1]     epoch
-- ARGV[2..]   per entry 3: queued, waiting, open or dead, which says what stands
--             there; the entry; its index, when it is open
-- Reply       how many were there and went
-- Cost        O(place in the list) per entry
-- Repeat      the entry is not there any more
local n = 0
for a = 2, #ARGV, 3 do
  local at, kind, entry, index = 11 + (a - 2) / 3, ARGV[a], ARGV[a + 1], ARGV[a + 2]
  local gone
  if kind == 'waiting' then
    gone = C('ZREM', KEYS[at], entry)
  elseif kind == 'open' then
    gone = C('HGET', KEYS[at], index) == entry and C('HDEL', KEYS[at], index) or 0
  else
    gone = C('LREM', KEYS[at], 1, entry)
  end
  if gone == 1 then
    n = n + 1
    C('RPUSH', KEYS[10], entry)
    if kind == 'dead' then
      tally('dropped', 1)
    else
      tally(kind, -1) tally('missing', 1)
    end
  end
end
count()
return n
