-- letters: takes dead letters out of the front of their list, for good or back
-- into the queues of their sites as if they had never failed. Those that stay go
-- to the end of the list: when all were passed, it is in its order again.
-- KEYS[1..9]  as in the prelude
-- KEYS[10]    dead list of the cause
-- KEYS[11..]  per letter that is revived 8: the block of its site; per one that is
--             dropped 1: the s of its site, which keeps when that was
-- ARGV[1]     epoch
-- ARGV[2]     id of the call
-- ARGV[3..]   per letter at the front of the list 4: the letter; keep, drop or
--             revive; its site; how many of its last bytes are the entry
-- Reply       how many letters were taken; those of blocked sites stay. -1: others
--             stand at the front of the list, and nothing is done
-- Cost        O(letters + log sites per letter that is revived)
-- Repeat      a repeat of the last call has its reply. For a late copy others stand
--             at the front; where they are the same again, all of them stay
local DEAD, PER_LETTER = KEYS[10], 4
local id, letters = ARGV[2], (#ARGV - 2) / PER_LETTER

local last, taken_last = string.match(call('HGET', META, 'letters') or '', '^(%S+) (%d+)$')
if last == id then return tonumber(taken_last) end

local front = letters > 0 and call('LRANGE', DEAD, 0, letters - 1) or {}
for i = 1, letters do
  if front[i] ~= ARGV[PER_LETTER * i - 1] then return -1 end
end
try_all()
call('LLEN', NEVER)
call('LTRIM', DEAD, letters, -1)
local others = call('LLEN', DEAD) > 0 -- if not and all stay, a repeat finds what it found

local revived, forgotten, block = 0, 0, 11
for a = 3, #ARGV, PER_LETTER do
  local letter, what, site, entry_size = ARGV[a], ARGV[a + 1], ARGV[a + 2], tonumber(ARGV[a + 3])
  local stays = what == 'keep'

  if what == 'drop' then
    forgotten = forgotten + 1
    call('HSET', KEYS[block], 'dropped', int(NOW) .. ' dead drop')
    call('PERSIST', KEYS[block])
    block = block + 1
  elseif what == 'revive' then
    stays = call('HGET', KEYS[block], 'blocked')
    if not stays then
      local entry = string.sub(letter, -entry_size)
      entry = string.sub(entry, 1, 2) .. '00' .. string.sub(entry, 5) -- never lost, no attempts
      call('RPUSH', KEYS[block + QUEUE + class(entry)], entry)
      place(block, site)
      revived = revived + 1
    end
    block = block + 8
  end
  if stays then call('RPUSH', DEAD, letter) end
end

tally('revived', revived)
tally('queued', revived)
tally('forgotten', forgotten)
if revived > 0 then tally('admits', 1) end
count()
if revived + forgotten > 0 or others then call('HSET', META, 'letters', id .. ' ' .. revived + forgotten) end
return revived + forgotten
