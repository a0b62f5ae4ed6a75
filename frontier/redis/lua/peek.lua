-- peek: reads the tail of a feed, and the number of its last element.
-- KEYS[1]  the feed, a list; producers push at its head
-- KEYS[2]  its number: how many elements were taken from it, from a start that
--          no earlier number of a feed of this name has passed
-- ARGV[1]  elements wanted at most
-- Reply    the number, then the elements, the last of the list first
-- Cost     O(elements)
-- Repeat   reads again
local call = redis.call
local FEED, NUMBER = KEYS[1], KEYS[2]
local want = tonumber(ARGV[1])

local number = call('GET', NUMBER)
if not number then
  local time = call('TIME')
  number = string.format('%.0f', time[1] * 1000000 + time[2])
  call('SET', NUMBER, number)
end

local reply = {number}
local tail = call('LRANGE', FEED, -want, -1)
for i = #tail, 1, -1 do reply[#reply + 1] = tail[i] end
return reply
