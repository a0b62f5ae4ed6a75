-- admit: makes new URLs known and queues them. Candidates come grouped by filter.
-- KEYS[1..9]   as in the prelude
-- KEYS[10..]   the nf filters that candidates fall in, then the s of each of ns
--              sites, then the q of each of nl lists
-- ARGV[1]      epoch
-- ARGV[2]      RPUSH (breadth) or LPUSH (depth)
-- ARGV[3]      entries that a list may hold
-- ARGV[4]      per filter, 2 bytes: how many candidates fall in it
-- ARGV[5]      per list, 3 bytes: its site, 1 to ns, and its class, 0 to 3
-- ARGV[6]      per candidate, 2 bytes: its list, 1 to nl
-- ARGV[7]      per site, 4 bytes: URLs that it may have, 0 = any; '' = all any
-- ARGV[8]      the candidates in the order to queue them in, 2 bytes each
-- ARGV[9]      per candidate that is wanted again, 2 bytes: which
-- ARGV[10]     ns
-- ARGV[11]     the memory marks, as in marks.lua
-- ARGV[12..]   ns sites; per candidate the 16 bytes that must be new; per
--              candidate its entry; per one wanted again its plain fingerprint
-- Reply        a letter a candidate: a admitted, s seen, c capped, t turned away by
--              the marks, f full; or '!lost' and which declared filter is missing
-- Cost         O(candidates) probes and pushes, O(log sites) per list that was empty
-- Repeat       what was admitted is seen; what was turned away counts once more
local byte, insert = string.byte, table.insert
local function u16(text, i) return byte(text, 2 * i - 1) * 256 + byte(text, 2 * i) end
local counts, lists, of, caps, order, again = unpack(ARGV, 4, 9)
local nf, n, ns = #counts / 2, #of / 2, tonumber(ARGV[10])
local S, Q = 9 + nf, 9 + nf + ns -- KEYS before the first s, the first q
local NEW, ENTRY, PLAIN = 11 + ns, 11 + ns + n, 11 + ns + 2 * n

-- What binds: caps, blocks, the bound of lists, if the shard has as much, marks.
local most, ruled = tonumber(ARGV[3]), META[6] or caps ~= ''
local memory = ARGV[11] ~= '' and weigh(ARGV[11])
local bar = memory and memory.bar or huge
local bound = bar < huge or (tonumber(C('HGET', KEYS[2], 'queued')) or 0) + n > most
local free, sites, len, out, plain, add, upto = {left = huge}, {}, {}, {}, {}, {}, {[0] = 0} -- upto: the last candidate of each filter
local function siteOf(l)
  local at, p = byte(lists, 3 * l - 2) * 256 + byte(lists, 3 * l - 1), byte(lists, 3 * l)
  if sites[at] then return sites[at], at, p end
  local s = C('HMGET', KEYS[S + at], 'clock', 'token', 'paused', 'blocked', 'cap', 'n')
  s.cap = tonumber(s[5]) or caps ~= '' and struct.unpack('>I4', caps, 4 * at - 3) or 0
  s.left = s[4] and 0 or s.cap > 0 and s.cap - (tonumber(s[6]) or 0) or huge
  sites[at] = s
  return s, at, p
end
local function refused(l) -- the letter of what binds; none: it fits
  local s = ruled and siteOf(l) or free
  len[l] = len[l] or bound and C('LLEN', KEYS[Q + l]) or 0
  if s.left <= 0 or len[l] >= most then return 'c' end
  if len[l] >= bar then tally('turned', 1) return 't' end
  s.left, len[l] = s.left - 1, len[l] + 1
end

for j = 1, nf do
  if C('EXISTS', KEYS[9 + j]) == 0 then return '!lost ' .. j end
  local from = upto[j - 1]
  upto[j] = from + u16(counts, j)
  local known = C('BF.MEXISTS', KEYS[9 + j], unpack(ARGV, NEW + from + 1, NEW + upto[j]))
  for x, yes in ipairs(known) do out[from + x] = yes == 1 and 's' or nil end
end
for x = 1, (ruled or bound) and n or 0 do
  local i = u16(order, x)
  out[i] = out[i] or refused(u16(of, i))
end

-- The first write of all: above maxmemory it is refused, and nothing is done.
local first = redis.pcall('HINCRBY', KEYS[2], 'calls', 1)
local full = type(first) == 'table'
if full and not string.find(first.err, 'OOM', 1, true) then return first end
for x = 1, #again / 2 do plain[u16(again, x)] = ARGV[PLAIN + x] end
for j = 1, nf do
  local new, items, put = {}, {}, {}
  for i = upto[j - 1] + 1, upto[j] do
    if not out[i] then insert(new, i) insert(items, ARGV[NEW + i]) end
  end
  for _, i in ipairs(new) do insert(items, plain[i]) end
  if items[1] and not full then put = redis.pcall('BF.INSERT', KEYS[9 + j], 'NOCREATE', 'ITEMS', unpack(items)) end
  for x, i in ipairs(new) do out[i] = type(put[x]) == 'number' and 'a' or 'f' end
end
for x = 1, n do
  local i = u16(order, x)
  if out[i] == 'a' then
    local l = u16(of, i)
    add[l] = add[l] or {}
    insert(add[l], ARGV[ENTRY + i])
  end
end
for l, entries in pairs(add) do
  local size = C(ARGV[2], KEYS[Q + l], unpack(entries))
  if memory then len[l] = size end
  if size == #entries or ruled then
    local s, at, p = siteOf(l)
    if size == #entries then rise(p, ARGV[11 + at], s) end
    if s.cap > 0 then C('HINCRBY', KEYS[S + at], 'n', #entries) C('PERSIST', KEYS[S + at]) end
  end
  tally('queued', #entries) tally('known', #entries)
end
tally('admits', DELTA.known and 1 or 0)
if not full then count() end
if memory and not full then remember(memory, len, NOW) end
return table.concat(out)
