-- choose: takes the URLs of a visit from what waits of its site: first its queues by
-- class, with the retries that are due, then the recrawls that are due.
-- KEYS[1..9]  those of the prelude
-- KEYS[+]     where the script says: blocks of sites
-- ARGV[+]     where the script says
-- Reply       none of its own
-- Cost        O(URLs + log waiting)
-- Repeat      takes further ones

-- join_retries moves up to n retries that are due to their queues, and returns the
-- best of class p and their classes.
local function join_retries(block, n, p)
  local due = call('ZRANGE', KEYS[block + RETRIES], '-inf', int(NOW), 'BYSCORE', 'LIMIT', '0', int(n))
  if due[1] then call('ZREM', KEYS[block + RETRIES], unpack(due)) end
  for _, entry in ipairs(due) do
    call('RPUSH', KEYS[block + QUEUE + class(entry)], entry)
    p = math.min(p, class(entry))
  end
  add_stat('waiting', -#due)
  add_stat('queued', #due)
  return p
end

-- take_queued moves up to n entries of class p to taken, and returns whether taken is
-- full. An entry that was lost before is leased alone: unless it is the first, it
-- returns to its queue with all that follows it.
local function take_queued(block, p, n, taken)
  local entries = call('LPOP', KEYS[block + QUEUE + p], int(n))
  if not entries then return false end
  for i, entry in ipairs(entries) do
    local was_lost = losses(entry) > 0
    if was_lost and taken[1] or taken.alone then
      for j = #entries, i, -1 do call('LPUSH', KEYS[block + QUEUE + p], entries[j]) end
      return true
    end
    taken[#taken + 1] = entry
    taken.alone = was_lost
  end
  return taken.alone
end

-- recrawl_share is how many of k entries are for recrawls that are due. visits rounds
-- it up in some of eight visits, so that a share below one entry counts too.
local function recrawl_share(block, k, visits, share)
  if share == 0 then return 0 end
  local due = call('ZCOUNT', KEYS[block + RECRAWLS], '-inf', int(NOW))
  return math.min(due, math.floor(k * share + visits / 8))
end

-- take_recrawls adds up to n recrawls that are due, the longest due first.
local function take_recrawls(block, n, taken)
  local due = call('ZRANGE', KEYS[block + RECRAWLS], '-inf', int(NOW), 'BYSCORE', 'LIMIT', '0', int(n))
  if not due[1] then return end
  local before = #taken
  for _, entry in ipairs(call('HMGET', KEYS[block + ENTRIES], unpack(due))) do
    if entry then taken[#taken + 1] = entry end
  end
  call('ZREM', KEYS[block + RECRAWLS], unpack(due))
  call('HDEL', KEYS[block + ENTRIES], unpack(due))
  add_stat('recrawls', -#due)
  add_stat('recrawled', #taken - before)
end

-- take_classes takes up to k entries, of class p first. One visit in eight starts with
-- an eighth from the worst class, so that none starves.
local function take_classes(block, p, k, visits)
  local taken, full = {}, false
  if k == 0 then return taken end
  if visits % 8 == 7 then
    for low = 3, p, -1 do
      if not taken[1] then full = take_queued(block, low, math.max(1, math.floor(k / 8)), taken) end
    end
  end
  for better = p, 3 do
    if not full and #taken < k then full = take_queued(block, better, k - #taken, taken) end
  end
  return taken
end

-- take_waiting takes up to k entries of all that waits, and returns how many of them
-- were queued.
local function take_waiting(block, p, k, visits, share)
  local taken = take_classes(block, join_retries(block, k, p), k - recrawl_share(block, k, visits, share), visits)
  local queued = #taken
  if queued < k and not taken.alone then take_recrawls(block, k - queued, taken) end
  return taken, queued
end
