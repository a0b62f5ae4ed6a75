-- takefeed: removes handled elements from a feed, and keeps late ones for another try.
-- KEYS[1]  the feed, a list
-- KEYS[2]  its number, as in peekfeed
-- KEYS[3]  the late ones, a list of 'number element', the longest untried first
-- ARGV[1]  the number of peekfeed's reply
-- ARGV[2]  how many elements leave the feed
-- ARGV[3..] these, the last of the list first; then of KEYS[3], per element 2:
--          what it is there, and 'gone', 'retry', or 'new' when it comes from the feed
-- Reply    1; -1: the number is another, so somebody took them already
-- Cost     O(1) per element at the end of its list
-- Repeat   -1, for the number has moved on; with no element of the feed what is gone
--          stays gone, and what is retried stays in the list once
local call = redis.call
local FEED, NUMBER, LATE = KEYS[1], KEYS[2], KEYS[3]
if call('GET', NUMBER) ~= ARGV[1] then return -1 end

-- Rights that would be missed only after the first write, which removes an element.
call('INCRBY', NUMBER, 0)
call('LTRIM', LATE, 0, -1)
call('RPUSH', LATE, '')
call('LTRIM', LATE, 0, -2)

local n = tonumber(ARGV[2])
for i = 3, n + 2 do call('LREM', FEED, -1, ARGV[i]) end
if n > 0 then call('INCRBY', NUMBER, n) end

for i = n + 3, #ARGV, 2 do
  local entry, what = ARGV[i], ARGV[i + 1]
  local was = what == 'new' or call('LREM', LATE, 1, entry) == 1
  if was and what ~= 'gone' then call('RPUSH', LATE, entry) end
end
return 1
