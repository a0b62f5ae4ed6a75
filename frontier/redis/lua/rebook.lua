-- rebook: frees the pages of the limit that were granted to fetchers that are gone.
-- KEYS[1]  the books, as in pages.lua
-- KEYS[2]  live, as in live.lua
-- ARGV[1]  pages taken, of a reply of pages.lua before the shards were read
-- ARGV[2]  rebooks of that reply: two fetchers that saw the same must not both free pages
-- ARGV[3]  pages that all shards settled, at a moment when nothing was leased
-- Reply    1; 0 when somebody took or freed pages meanwhile: nothing is changed
-- Cost     O(fetchers)
-- Repeat   changes nothing more
local call = redis.call
local BOOKS, LIVE = KEYS[1], KEYS[2]
local seen, rebooks, settled = ARGV[1], ARGV[2], tonumber(ARGV[3])

local all = call('HGETALL', BOOKS)
local taken, freed = nil, '0'
for i = 1, #all, 2 do
  if all[i] == 'taken' then taken = all[i + 1] end
  if all[i] == 'rebooks' then freed = all[i + 1] end
end
if taken ~= seen or freed ~= rebooks then return 0 end

-- Rights that would be missed only after the first write.
call('ZSCORE', LIVE, '')
call('HDEL', BOOKS, '')
call('HSET', BOOKS, 'rebooks', rebooks + 1)
if settled < tonumber(taken) then call('HSET', BOOKS, 'taken', settled) end
for i = 1, #all, 2 do
  local who = string.match(all[i], '^granted:(.*)$')
  if who and not call('ZSCORE', LIVE, who) then
    call('HDEL', BOOKS, all[i], 'settled:' .. who, 'seq:' .. who)
  end
end
return 1
