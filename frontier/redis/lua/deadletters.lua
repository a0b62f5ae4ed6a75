-- deadletters: takes dead letters off the front of their list: it drops them, or queues
-- them in their sites as if they had never failed. Those that stay move to the end of
-- the list, so that after all were passed it has its first order.
-- KEYS[1..9]  as in the prelude
-- KEYS[10]    dead list of the cause
-- KEYS[11..]  per dead letter that is retried 8: the block of its site; per one that is
--             dropped 1: the s of its site, which keeps when that was
-- ARGV[1]     epoch
-- ARGV[2]     id of the call
-- ARGV[3..]   per dead letter at the front of the list 4: its element; keep, drop or
--             retry; its site; how many of its last bytes are the entry
-- Reply       how many were taken; those of blocked sites stay. -1: others are at the
--             front of the list, and nothing is done
-- Cost        O(dead letters + log sites per one that is retried)
-- Repeat      a repeat of the last call has its reply. For a late copy others are at
--             the front; where the same are there again, all of them stay
local DEAD, PER_LETTER = KEYS[10], 4
local id, count = ARGV[2], (#ARGV - 2) / PER_LETTER

local last, last_reply = string.match(call('HGET', META, 'dead_call') or '', '^(%S+) (%d+)$')
if last == id then return tonumber(last_reply) end

local front = count > 0 and call('LRANGE', DEAD, 0, count - 1) or {}
for i = 1, count do
  if front[i] ~= ARGV[PER_LETTER * i - 1] then return -1 end
end
try_all()
call('LLEN', NEVER)
call('LTRIM', DEAD, count, -1)
local others = call('LLEN', DEAD) > 0 -- if not, and all stay, a repeat finds the same list

local retried, forgotten, block = 0, 0, 11
for a = 3, #ARGV, PER_LETTER do
  local element, what, site, entry_size = ARGV[a], ARGV[a + 1], ARGV[a + 2], tonumber(ARGV[a + 3])
  local stays = what == 'keep'

  if what == 'drop' then
    forgotten = forgotten + 1
    call('HSET', KEYS[block], 'dropped', int(NOW) .. ' dead drop')
    call('PERSIST', KEYS[block])
    block = block + 1
  elseif what == 'retry' then
    stays = call('HGET', KEYS[block], 'blocked')
    if not stays then
      local entry = string.sub(element, -entry_size)
      entry = string.sub(entry, 1, 2) .. '00' .. string.sub(entry, 5) -- never lost, no attempts
      call('RPUSH', KEYS[block + QUEUE + class(entry)], entry)
      place_site(block, site)
      retried = retried + 1
    end
    block = block + 8
  end
  if stays then call('RPUSH', DEAD, element) end
end

add_stat('retried_dead', retried)
add_stat('queued', retried)
add_stat('forgotten', forgotten)
if retried > 0 then add_stat('admits', 1) end
write_stats()
if retried + forgotten > 0 or others then call('HSET', META, 'dead_call', id .. ' ' .. retried + forgotten) end
return retried + forgotten
