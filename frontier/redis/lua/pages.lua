-- pages: hands out the page limit of a crawl, in pieces.
-- KEYS[1]  the books, a hash: taken, the pages of the limit that were granted; rebooks,
--          how often rebook.lua freed some; per fetcher granted:ID, its part of these;
--          settled:ID, pages that it settled; and seq:ID
-- KEYS[2]  live, as in live.lua
-- ARGV[1]  the limit
-- ARGV[2]  id of the fetcher
-- ARGV[3]  number of its call: one that is not above its last is a late copy
-- ARGV[4]  pages that it settled so far
-- ARGV[5]  pages that it wants granted in all, the settled ones among them
-- ARGV[6]  where there are no books: pages that the crawl settled before; '' = unknown
-- Reply    {pages granted to it, pages of the limit that are granted to nobody, pages
--          taken, 1 if all granted pages are settled or granted to fetchers that are
--          gone, rebooks}; error UNSET when there are no books and ARGV[6] is ''
-- Cost     O(1), and O(fetchers) when nothing is left or many are gone
-- Repeat   a call that is not above the last changes nothing
local call = redis.call
local BOOKS, LIVE = KEYS[1], KEYS[2]
local limit, id, seq = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local settled, want, before = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]

local b = call('HMGET', BOOKS, 'taken', 'granted:' .. id, 'seq:' .. id, 'rebooks')
local taken, granted, last = tonumber(b[1] or before), tonumber(b[2] or 0), tonumber(b[3] or 0)
if not taken then return redis.error_reply('UNSET no pages are counted yet') end

local mine = {} -- what this call writes, after all that it reads
if seq > last then
  -- A piece is at most half of what is left for each: all end at about the same time.
  local left = math.max(0, limit - taken)
  local piece = math.ceil(left / 2 / math.max(1, call('ZCARD', LIVE)))
  local grants = math.max(settled, math.min(want, granted + math.min(piece, left)))

  taken = taken - granted + grants
  granted = grants
  mine = {taken = taken, ['granted:' .. id] = granted, ['settled:' .. id] = settled, ['seq:' .. id] = seq}
end

-- Whether pages of fetchers that work are open. Fetchers that are gone and left no
-- open page are removed when they are many.
local quiet, lapsed = 0, {}
local many = call('HLEN', BOOKS) > 3000 + 6 * call('ZCARD', LIVE)
if taken >= limit or many then
  local all, books = call('HGETALL', BOOKS), {}
  for i = 1, #all, 2 do books[all[i]] = all[i + 1] end
  for name, value in pairs(mine) do books[name] = value end

  quiet = 1
  for name, pages in pairs(books) do
    local who = string.match(name, '^granted:(.*)$')
    local open = who and tonumber(pages) > tonumber(books['settled:' .. who] or 0)
    local gone = who and not call('ZSCORE', LIVE, who)
    if open and not gone then quiet = 0 end
    if many and gone and not open then lapsed[#lapsed + 1] = who end
  end
end
call('HDEL', BOOKS, '') -- the right to it, before the first write
if mine.taken then
  call('HSET', BOOKS, 'taken', taken, 'granted:' .. id, granted, 'settled:' .. id, settled, 'seq:' .. id, seq)
end
for _, who in ipairs(lapsed) do call('HDEL', BOOKS, 'granted:' .. who, 'settled:' .. who, 'seq:' .. who) end
return {granted, math.max(0, limit - taken), taken, quiet, tonumber(b[4] or 0)}
