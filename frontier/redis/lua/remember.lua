-- remember: makes fingerprints known to one filter, and queues nothing.
-- KEYS[1..9]  as in the prelude
-- KEYS[10..]  the keys of the filter
-- ARGV[1]     epoch
-- ARGV[2..3]  keys of a filter and URLs that the last may have, as in filters.lua
-- ARGV[4..]   the fingerprints
-- Reply       what BF.INSERT answers to each, or as filters.lua says
-- Cost        O(fingerprints)
-- Repeat      they are known
local each, most = tonumber(ARGV[2]), tonumber(ARGV[3])
local FIRST_PRINT = 4

local unfit = undeclared(tonumber(keys) or 1, each, 1)
if unfit then return unfit end

local LAST = KEYS[9 + each]
if not fits(LAST, #ARGV - FIRST_PRINT + 1, most) then return redis.error_reply('GROW the filters') end
return call('BF.INSERT', LAST, 'NOCREATE', 'ITEMS', unpack(ARGV, FIRST_PRINT))
