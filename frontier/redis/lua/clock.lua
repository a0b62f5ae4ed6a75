-- clock: lets the time of a shard go on from where it stands when the clock of
-- its server was set back, or that of the server that took over is behind.
-- KEYS[1..9]  as in the prelude
-- ARGV[1]     epoch
-- ARGV[2]     ms that time may stand still
-- Reply       ms by which the clock is behind, as of now added to what it shows;
--             0 = no more than that
-- Cost        O(1)
-- Repeat      finds the clock right
local behind = TICK - CLOCK
if behind < tonumber(ARGV[2]) then return 0 end
C('HSET', KEYS[1], 'ahead', int(AHEAD + behind))
return behind
