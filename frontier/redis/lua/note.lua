-- note: puts admitted seeds on the list of seeds whose outcome reports name.
-- KEYS[1..9]   as in the prelude
-- KEYS[10]     outcomes of seeds, a hash, as in counters
-- ARGV[1]      epoch
-- ARGV[2]      how many seeds the list may have
-- ARGV[3..]    their URLs, without credentials
-- Reply        1
-- Cost         O(seeds of the call)
-- Repeat       what is there stays as it is
local SEEDS = KEYS[10]
local room = tonumber(ARGV[2]) - call('HLEN', SEEDS)

for a = 3, #ARGV do
  if room <= 0 then break end
  if call('HEXISTS', SEEDS, ARGV[a]) == 0 then
    call('HSET', SEEDS, ARGV[a], '')
    room = room - 1
  end
end
return 1
