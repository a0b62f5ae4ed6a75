-- visit: lends sites whose tickets are good, with some of their URLs each.
-- KEYS[1..9]    as in the prelude
-- KEYS[10..]    per site 7: its block of the prelude, then v of the token
-- ARGV[1]       epoch
-- ARGV[2]       lease, ms
-- ARGV[3]       URLs that a visit may have
-- ARGV[4]       span, ms, that a visit may last at its site's delay, 0 = any
-- ARGV[5]       delay, ms, of a site that has none of its own
-- ARGV[6]       1: no URL that was lost twice is lent, 0: one at most; the sites of
--               others are due again in a second and their tickets void
-- ARGV[7..]     per site 4: site, token, class, ticket
-- Reply         per site '' when nothing was lent, else {delay ms, why, failures
--               in a row, override, index, entry, index, entry, ...}
-- Cost          O(URLs + log sites) per site
-- Repeat        a token that has its lease already gets what is still open of
--               it; a ticket is good once, for lending takes its site away
local lease, most = tonumber(ARGV[2]), tonumber(ARGV[3])
local span, usual, safe = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == '1'

-- join moves retries that are due to their queues; the best class among them.
local function join(b, n, best)
  local due = C('ZRANGE', KEYS[b + 5], '-inf', int(NOW), 'BYSCORE', 'LIMIT', 0, n)
  if due[1] then C('ZREM', KEYS[b + 5], unpack(due)) end
  for _, entry in ipairs(due) do
    C('RPUSH', KEYS[b + 1 + class(entry)], entry)
    best = math.min(best, class(entry))
  end
  tally('waiting', -#due) tally('queued', #due)
  return best
end

-- take moves up to n entries of class p to got. One marked lost goes alone: it
-- and what follows go back unless it is the first; true = got is full.
local function take(b, p, n, got)
  local entries = C('LPOP', KEYS[b + 1 + p], n)
  if not entries then return false end
  for i, entry in ipairs(entries) do
    local lost = string.byte(entry, 3) ~= 48
    if lost and got[1] or got.alone then
      for j = #entries, i, -1 do C('LPUSH', KEYS[b + 1 + p], entries[j]) end
      return true
    end
    got[#got + 1], got.alone = entry, lost
  end
  return got.alone
end

-- last: the entry dies if it is lost once more; heads: that of some list does.
local function last(entry) return entry and string.byte(entry, 3) > 49 end
local function heads(b)
  for p = 1, 4 do if last(C('LINDEX', KEYS[b + p], 0)) then return true end end
end

-- lend fills v of the token and returns what is in it.
local function lend(b, member, token, p, s)
  local delay = tonumber(s[3]) or 0
  if delay <= 0 then delay = usual end
  local k = most
  if span > 0 then k = math.max(1, math.min(most, math.floor(span / math.max(delay, 1)))) end
  local got, turn, full, p = {}, tonumber(s[7]) or 0, false, join(b, k, p)
  for low = 3, turn % 8 == 7 and p or 4, -1 do
    if not got[1] then full = take(b, low, math.max(1, math.floor(k / 8)), got) end
  end
  for c = p, 3 do
    if not full and #got < k then full = take(b, c, k - #got, got) end
  end
  if not got[1] then return end
  local open = {}
  for i, entry in ipairs(got) do open[2 * i - 1], open[2 * i] = i, entry end
  C('HSET', KEYS[b + 6], unpack(open))
  C('HSET', KEYS[b], 'token', token, 'turn', (turn + 1) % 8)
  if s[1] or s[9] then C('PERSIST', KEYS[b]) end
  C('ZADD', KEYS[3], int(NOW + lease), member)
  tally('queued', -#got) tally('open', #got) tally('visits', 1) -- what goes and comes back leaves a trace
  return open
end

local reply, b = {}, 10
for a = 7, #ARGV, 4 do
  local site, token, p, ticket = ARGV[a], ARGV[a + 1], tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3])
  local s = C('HMGET', KEYS[b], 'clock', 'token', 'delay', 'why', 'failures', 'override', 'turn', 'paused', 'version')
  local member, open = token .. ' ' .. site, nil
  if C('ZSCORE', KEYS[3], member) then
    open = C('HGETALL', KEYS[b + 6])
  elseif not s[2] and not s[8] and (tonumber(s[1]) or 0) <= NOW
    and tonumber(C('ZSCORE', KEYS[4 + p], site) or -1) == ticket then
    if safe and heads(b) then
      C('ZADD', KEYS[4 + p], int(NOW + 1000), site)
    else
      open = lend(b, member, token, p, s)
      if open then C('ZREM', KEYS[4 + p], site) else place(b, site) end
    end
  end
  safe = safe or open and last(open[2])
  reply[#reply + 1] = open and {s[3] or '', s[4] or '', s[5] or '', s[6] or '', unpack(open)} or ''
  b = b + 7
end
count()
return reply
