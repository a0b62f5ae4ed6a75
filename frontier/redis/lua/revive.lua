-- revive: puts dead letters back at the end of their queues, as if they had
-- never failed.
-- KEYS[1..9]  as in the prelude
-- KEYS[10]    dead list of the cause
-- KEYS[11..]  per letter 6: the block of its site
-- ARGV[1]     epoch
-- ARGV[2..]   per letter 3: site, the letter, how many of its last bytes are the entry
-- Reply       how many letters were there and went; those of blocked sites stay
-- Cost        O(place in the dead list + log sites) per letter
-- Repeat      the letter is not there any more
local DEAD = KEYS[10]
local revived, block = 0, 11
for a = 2, #ARGV, 3 do
  local site, letter, entry_size = ARGV[a], ARGV[a + 1], tonumber(ARGV[a + 2])
  if not call('HGET', KEYS[block], 'blocked') and call('LREM', DEAD, 1, letter) == 1 then
    local entry = string.sub(letter, -entry_size)
    entry = string.sub(entry, 1, 2) .. '00' .. string.sub(entry, 5) -- never lost, no attempts
    call('RPUSH', KEYS[block + QUEUE + class(entry)], entry)
    place(block, site)
    revived = revived + 1
  end
  block = block + 6
end
tally('revived', revived)
tally('queued', revived)
if revived > 0 then tally('admits', 1) end
count()
return revived
