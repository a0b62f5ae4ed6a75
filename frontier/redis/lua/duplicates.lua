-- duplicates: which contents another URL had before; new ones are added to the filter.
-- KEYS[1..9]  as in the prelude
-- KEYS[10..]  the keys of the filter of contents
-- ARGV[1]     epoch
-- ARGV[2..3]  keys of the filter and items that the last may have, as in filters.lua;
--             -1: what does not fit is not added
-- ARGV[4..]   per content: its digest; then per content: its digest with the URL that has it
-- Reply       a verdict code a content: d duplicate, f first; or as filters.lua says, with
--             KEYS 0 and LOST where the filter is to be made
-- Cost        O(contents)
-- Repeat      the same: of a first one the filter has the URL too, of a duplicate it has not
local each, most = tonumber(ARGV[2]), tonumber(ARGV[3])
local DIGEST, n = 3, (#ARGV - 3) / 2
local PAGE, LAST = DIGEST + n, KEYS[9 + each]

local unfit = undeclared(tonumber(call('HGET', META, 'contents')) or 0, each, 1)
if unfit then return unfit end

-- Which digests the filter has, and which pages.
local list, in_filter = {}, {}
for i = 1, 2 * n do list[i] = i end
known(list, 10, each, in_filter, DIGEST)

-- What is new in this call is known from there on.
local adds, verdicts, added = {}, {}, {}
for i = 1, n do
  local digest, page = ARGV[DIGEST + i], ARGV[PAGE + i]
  if not in_filter[i] and not added[digest] then
    adds[#adds + 1], adds[#adds + 2] = digest, page
    added[digest], added[page] = true, true
    verdicts[i] = 'f'
  else
    verdicts[i] = (in_filter[n + i] or added[page]) and 'f' or 'd'
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
return table.concat(verdicts)
