-- choose: takes the URLs of a visit from what waits of its site: queues by class, a
-- retry that is due among them, then what is to be fetched again.
-- KEYS[1..9]  those of the prelude
-- KEYS[+]     where the script says: blocks of sites
-- ARGV[+]     where the script says
-- Reply       none of its own
-- Cost        O(URLs + log waiting)
-- Repeat      takes further ones

-- join moves up to n retries that are due to their queues, and returns the better
-- of class p and the best of theirs.
local function join(block, n, p)
  local due = call('ZRANGE', KEYS[block + RETRIES], '-inf', int(NOW), 'BYSCORE', 'LIMIT', '0', int(n))
  if due[1] then call('ZREM', KEYS[block + RETRIES], unpack(due)) end
  for _, entry in ipairs(due) do
    call('RPUSH', KEYS[block + QUEUE + class(entry)], entry)
    p = math.min(p, class(entry))
  end
  tally('waiting', -#due)
  tally('queued', #due)
  return p
end

-- take moves up to n entries of class p to got, and says whether got is full. An
-- entry that was lost goes alone: unless it is the first, it goes back, with all
-- that follows it.
local function take(block, p, n, got)
  local entries = call('LPOP', KEYS[block + QUEUE + p], int(n))
  if not entries then return false end
  for i, entry in ipairs(entries) do
    local was_lost = losses(entry) > 0
    if was_lost and got[1] or got.alone then
      for j = #entries, i, -1 do call('LPUSH', KEYS[block + QUEUE + p], entries[j]) end
      return true
    end
    got[#got + 1] = entry
    got.alone = was_lost
  end
  return got.alone
end

-- reserved is how many of k entries are left to those due to be fetched again; what
-- is less than one comes about by turns.
local function reserved(block, k, visits, share)
  if share == 0 then return 0 end
  local due = call('ZCOUNT', KEYS[block + AGAIN], '-inf', int(NOW))
  return math.min(due, math.floor(k * share + visits / 8))
end

-- renew adds up to n entries that are due to be fetched again, the longest due
-- first.
local function renew(block, n, got)
  local due = call('ZRANGE', KEYS[block + AGAIN], '-inf', int(NOW), 'BYSCORE', 'LIMIT', '0', int(n))
  if not due[1] then return end
  local before = #got
  for _, entry in ipairs(call('HMGET', KEYS[block + KEPT], unpack(due))) do
    if entry then got[#got + 1] = entry end
  end
  call('ZREM', KEYS[block + AGAIN], unpack(due))
  call('HDEL', KEYS[block + KEPT], unpack(due))
  tally('again', -#due)
  tally('renewed', #got - before)
end

-- choose takes up to k entries, of class p first. One visit in eight starts with
-- an eighth from the worst class, so that none starves.
local function choose(block, p, k, visits)
  local got, full = {}, false
  if k == 0 then return got end
  if visits % 8 == 7 then
    for low = 3, p, -1 do
      if not got[1] then full = take(block, low, math.max(1, math.floor(k / 8)), got) end
    end
  end
  for better = p, 3 do
    if not full and #got < k then full = take(block, better, k - #got, got) end
  end
  return got
end

-- gather takes up to k entries of all that waits, and returns how many of them were
-- queued.
local function gather(block, p, k, visits, share)
  local got = choose(block, join(block, k, p), k - reserved(block, k, visits, share), visits)
  local queued = #got
  if queued < k and not got.alone then renew(block, k - queued, got) end
  return got, queued
end
