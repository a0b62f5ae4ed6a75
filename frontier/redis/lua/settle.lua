-- settle: takes outcomes of visits by index, and gives sites back.
-- KEYS[1..9]   as in the prelude
-- KEYS[10..]   the dead lists of the nd causes, then per settlement 7: the
--              block of its site, then v of its token
-- ARGV[1]      epoch
-- ARGV[2]      nd
-- ARGV[3]      letters that a dead list may hold
-- ARGV[4..]    per settlement: token, site, n, kinds: a letter each of d done,
--              r retry, x dead, q requeue; free: 1 or 0; if 1: remain ms, delay
--              ms, why, failures; the n indexes, each once; then in their order
--              per retry: ms from now; per dead: its cause, 1 to nd, and what
--              comes before the entry in its letter
-- Reply        per settlement a letter per outcome: 1 settled, 0 gone
-- Cost         O(outcomes + log sites) per settlement
-- Repeat       what is settled is gone; values of the site are written only
--              while it holds the token, by the call that frees it
local nd, most = tonumber(ARGV[2]), tonumber(ARGV[3])

-- mark writes class, lost and attempts of an entry.
local function mark(entry, p, attempts)
  return string.sub(entry, 1, 1) .. string.char(48 + p, 48, attempts) .. string.sub(entry, 5)
end

-- finish does what each outcome asks; the indexes start after ARGV[a]. A blocked
-- site gets nothing back.
local function finish(b, entries, kinds, a, blocked)
  local letters, back, touched, index = {}, {}, false, a
  a = a + #kinds
  for i = 1, #kinds do
    local kind, entry = string.sub(kinds, i, i), entries[i]
    local at = a + 1
    a = a + (kind == 'r' and 1 or kind == 'x' and 2 or 0)
    letters[i] = entry and '1' or '0'
    if entry then
      local p, attempts = class(entry), string.byte(entry, 4)
      tally('open', -1)
      if kind == 'd' then tally('done', 1)
      elseif kind == 'x' then bury(KEYS[9 + ARGV[at]], ARGV[at + 1] .. mark(entry, p, attempts), most)
      elseif blocked then tally('blocked', 1)
      else
        touched = true
        if kind == 'r' then
          local again = mark(entry, math.min(3, p + 1), math.min(255, attempts + 1))
          local added = C('ZADD', KEYS[b + 5], int(NOW + ARGV[at]), again)
          tally('retried', 1) tally('waiting', added) tally('merged', 1 - added)
        else
          back[#back + 1] = {tonumber(ARGV[index + i]), mark(entry, p, attempts), p}
        end
      end
    end
  end
  table.sort(back, function(x, y) return x[1] > y[1] end)
  for _, x in ipairs(back) do C('LPUSH', KEYS[b + 1 + x[3]], x[2]) end
  tally('queued', #back)
  return table.concat(letters), touched, a
end

-- free gives the site back with the values at ARGV[f..]: remain, delay, why, failures.
local function free(b, clock, f)
  C('HDEL', KEYS[b], 'token', 'why', 'failures')
  C('HSET', KEYS[b], 'clock', int(clock), 'delay', ARGV[f + 1])
  if ARGV[f + 2] ~= '' then C('HSET', KEYS[b], 'why', ARGV[f + 2]) end
  if ARGV[f + 3] ~= '0' then C('HSET', KEYS[b], 'failures', ARGV[f + 3]) end
  expire(b, clock)
end

local reply, a, b = {}, 4, 10 + nd
while ARGV[a] do
  local token, site, n, kinds = ARGV[a], ARGV[a + 1], tonumber(ARGV[a + 2]), ARGV[a + 3]
  local values = ARGV[a + 4] == '1' and a + 5
  local first = a + (values and 9 or 5)
  local member, v = token .. ' ' .. site, KEYS[b + 6]
  local entries, done, touched = {}, nil, nil
  local leased = C('ZSCORE', KEYS[3], member)
  local s = leased and C('HMGET', KEYS[b], 'token', 'clock', 'blocked') or {}
  if n > 0 and leased then
    entries = C('HMGET', v, unpack(ARGV, first, first + n - 1))
    C('HDEL', v, unpack(ARGV, first, first + n - 1))
  end
  done, touched, a = finish(b, entries, kinds, first - 1, s[3])
  reply[#reply + 1] = done
  a = a + 1
  if leased then
    local mine = s[1] == token
    local freed = mine and values
    if freed then free(b, math.max(tonumber(s[2]) or 0, NOW + 1 + ARGV[values]), values) end
    if (freed or not mine) and C('EXISTS', v) == 0 then C('ZREM', KEYS[3], member) end
    if freed or touched and not mine then place(b, site, freed) end
  end
  b = b + 7
end
count()
return reply
