-- peekfeed: reads the tail of a feed with the number of its last element, and its late
-- elements.
-- KEYS[1]  the feed, a list; producers push at its head
-- KEYS[2]  its number: how many elements were taken from it, from a start that
--          no earlier number of a feed of this name has passed
-- KEYS[3]  the late elements, as in takefeed
-- ARGV[1]  elements wanted at most, of the feed and of the late ones each
-- Reply    the number, how many elements of the feed follow, these, the last of
--          the list first, then the late ones
-- Cost     O(elements)
-- Repeat   reads again
local call = redis.call
local FEED, NUMBER, LATE = KEYS[1], KEYS[2], KEYS[3]
local want = tonumber(ARGV[1])

local tail, late = call('LRANGE', FEED, -want, -1), call('LRANGE', LATE, 0, want - 1)
local number = call('GET', NUMBER)
if not number then
  local time = call('TIME')
  number = string.format('%.0f', time[1] * 1000000 + time[2])
  call('SET', NUMBER, number)
end

local reply = {number, #tail}
for i = #tail, 1, -1 do reply[#reply + 1] = tail[i] end
for _, entry in ipairs(late) do reply[#reply + 1] = entry end
return reply
