-- drop: forgets dead letters.
-- KEYS[1..9]  as in the prelude
-- KEYS[10]    dead list of the cause
-- ARGV[1]     epoch
-- ARGV[2..]   the letters
-- Reply       how many were there and went
-- Cost        O(place in the dead list) per letter
-- Repeat      the letter is not there any more
local DEAD = KEYS[10]
local forgotten = 0
for a = 2, #ARGV do forgotten = forgotten + call('LREM', DEAD, 1, ARGV[a]) end
tally('forgotten', forgotten)
count()
return forgotten
