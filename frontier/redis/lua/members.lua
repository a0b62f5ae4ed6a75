-- members: reads the programs at work on a crawl, or those that vanished, page by page.
-- KEYS[1]  live, a zset of ids by deadline
-- KEYS[2]  what is known of each, a hash
-- KEYS[3]  those that vanished, as KEYS[1]
-- ARGV[1]  place of the first, from 0
-- ARGV[2]  how many at most
-- ARGV[3]  all; seeding: only those that seed; or of those that vanished, over: those
--          still in KEYS[1]; gone: those in KEYS[3]
-- Reply    programs read; then per program 3: id, ms until its deadline, what is
--          known of it
-- Cost     O(programs of the page)
-- Repeat   reads only
local call = redis.call
local first, count, which = ARGV[1], ARGV[2], ARGV[3]

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function seeds(known)
  return string.find(known, '"kind":"seeder"', 1, true) or string.find(known, '"seeding":true', 1, true)
end

local list, from, to = KEYS[1], string.format('(%.0f', now), '+inf'
if which == 'over' then from, to = '-inf', string.format('%.0f', now) end
if which == 'gone' then list, from = KEYS[3], '-inf' end
local page = call('ZRANGE', list, from, to, 'BYSCORE', 'LIMIT', first, count, 'WITHSCORES')
local reply = {#page / 2}
for i = 1, #page, 2 do
  local id, left = page[i], tonumber(page[i + 1]) - now
  local known = call('HGET', KEYS[2], id) or ''

  if which ~= 'seeding' or seeds(known) then
    reply[#reply + 1] = id
    reply[#reply + 1] = left
    reply[#reply + 1] = known
  end
end
return reply
