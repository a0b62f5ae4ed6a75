-- take: removes from a feed what was handled.
-- KEYS[1]  the feed, a list
-- KEYS[2]  its number, as in peek
-- ARGV[1]  the number that peek answered
-- ARGV[2..] the elements that were handled, the last of the list first
-- Reply    how many went; -1: the number is another, so somebody took them already
-- Cost     O(1) per element at the tail
-- Repeat   -1, for the number has moved on
local C = redis.call
if C('GET', KEYS[2]) ~= ARGV[1] then return -1 end
local n = 0
for i = 2, #ARGV do n = n + C('LREM', KEYS[1], -1, ARGV[i]) end
C('INCRBY', KEYS[2], #ARGV - 1)
return n
