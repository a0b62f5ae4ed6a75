-- filters: how scripts read filters and add to them. All filters of a shard have the
-- same number of keys, for a key must stay small enough to move: the last takes
-- what is new, and what any of them has is known.
-- KEYS[1]  meta: keys, how many keys each filter of URLs has, 1 when absent;
--          contents, the same of that of contents, 0
-- KEYS[+]  where the script says: the filters, all keys of each in turn
-- ARGV[1]  epoch
-- ARGV[+]  where the script says: how many keys of each filter are declared; URLs
--          that its last key may have, 0 = those that it has room for
-- Reply    error KEYS and how many there are, if others are declared; LOST and which
--          of the declared is missing; GROW if what is new does not fit in the last key
--          of a filter
-- Cost     O(fingerprints) for each key, some 3 us more once a key is full
-- Repeat   reads only

-- undeclared is the reply of a script that has too few keys of filters, too many, or
-- one that is missing. They start at KEYS[10]; there is how many each should have.
local function undeclared(there, each, filters)
  local declared = each * filters
  if there ~= each then return redis.error_reply('KEYS ' .. there) end
  if call('EXISTS', unpack(KEYS, 10, 9 + declared)) == declared then return end
  for c = 1, declared do
    if call('EXISTS', KEYS[9 + c]) == 0 then return redis.error_reply('LOST ' .. c) end
  end
end

-- known gives the verdict s to those of a list of candidates that a filter has.
-- first is its first key of so many.
local function known(list, first, each, verdicts, NEW)
  local asked, last = list, first + each - 1
  for k = first, last do
    local prints, rest = {}, {}
    for x, i in ipairs(asked) do prints[x] = ARGV[NEW + i] end
    for x, yes in ipairs(call('BF.MEXISTS', KEYS[k], unpack(prints))) do
      if yes == 1 then
        verdicts[asked[x]] = 's'
      elseif k < last then
        rest[#rest + 1] = asked[x]
      end
    end
    if not rest[1] then return end
    asked = rest
  end
end

-- fresh are the candidates of a list that have no verdict, and the fingerprints that
-- make them known: what must be new of each, then the plain ones.
local function fresh(list, verdicts, NEW, PLAIN)
  local new, prints = {}, {}
  for _, i in ipairs(list) do
    if not verdicts[i] then
      new[#new + 1] = i
      prints[#prints + 1] = ARGV[NEW + i]
    end
  end
  for _, i in ipairs(ARGV[PLAIN + 1] and new or {}) do
    local plain = ARGV[PLAIN + i]
    if plain ~= '' then prints[#prints + 1] = plain end
  end
  return new, prints
end

-- fits says whether so many more fit in a key. A key has room for more than it
-- has without growing; it may grow until it holds most.
local function fits(key, more, most)
  local items = call('BF.CARD', key)
  if items + more <= most then return true end
  local info = call('BF.INFO', key)
  for i = 1, #info, 2 do
    local name = info[i].ok or info[i] -- of RedisBloom, of Valkey's module
    if name == 'Capacity' then return items + more <= info[i + 1] end
  end
end
