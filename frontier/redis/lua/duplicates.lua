-- duplicates: which contents another URL brought before; new ones are remembered.
-- KEYS[1..9]  as in the prelude
-- KEYS[10..]  the keys of the filter of contents
-- ARGV[1]     epoch
-- ARGV[2..3]  keys of the filter and items that the last may hold, as in filters.lua;
--             -1: what does not fit is not remembered
-- ARGV[4..]   per content: its digest; then, of all, that with the URL that brings it
-- Reply       a letter a content: d duplicate, f first; or as filters.lua says, with
--             KEYS 0 and LOST where the filter is to be made
-- Cost        O(contents)
-- Repeat      the same: what is first has its URL remembered, what is not has none
local each, most = tonumber(ARGV[2]), tonumber(ARGV[3])
local DIGEST, n = 3, (#ARGV - 3) / 2
local PAGE, LAST = DIGEST + n, KEYS[9 + each]

local unfit = undeclared(tonumber(call('HGET', META, 'contents')) or 0, each, 1)
if unfit then return unfit end

-- Which digests the filter holds, and which pages.
local list, held = {}, {}
for i = 1, 2 * n do list[i] = i end
known(list, 10, each, held, DIGEST)

-- What is new in this call is held from there on.
local adds, letters, added = {}, {}, {}
for i = 1, n do
  local digest, page = ARGV[DIGEST + i], ARGV[PAGE + i]
  if not held[i] and not added[digest] then
    adds[#adds + 1], adds[#adds + 2] = digest, page
    added[digest], added[page] = true, true
    letters[i] = 'f'
  else
    letters[i] = (held[n + i] or added[page]) and 'f' or 'd'
  end
end

if adds[1] then
  if fits(LAST, #adds, most) then
    local reply = redis.pcall('BF.INSERT', LAST, 'NOCREATE', 'ITEMS', unpack(adds))
    if reply.err and not string.find(reply.err, 'OOM', 1, true) then return reply end
  elseif most >= 0 then
    return redis.error_reply('GROW the filter')
  end
end
return table.concat(letters)
