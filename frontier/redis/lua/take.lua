-- take: removes from a feed what was handled.
-- KEYS[1]  the feed, a list
-- KEYS[2]  its number, as in peek
-- ARGV[1]  the number that peek answered
-- ARGV[2..] the elements that were handled, the last of the list first
-- Reply    how many went; -1: the number is another, so somebody took them already
-- Cost     O(1) per element at the tail
-- Repeat   -1, for the number has moved on
local call = redis.call
local FEED, NUMBER = KEYS[1], KEYS[2]
if call('GET', NUMBER) ~= ARGV[1] then return -1 end

local taken = 0
for i = 2, #ARGV do taken = taken + call('LREM', FEED, -1, ARGV[i]) end
call('INCRBY', NUMBER, #ARGV - 1)
return taken
