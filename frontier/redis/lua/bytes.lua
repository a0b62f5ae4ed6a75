-- bytes: how many bytes of the server long queues take. MIGRATE moves a key at
-- once, and both servers stand still meanwhile: what takes too many gets no more.
-- KEYS[1]   meta: heavy, 1 since a queue was full
-- KEYS[+]   where the script says: the queue, and the s of its site. Its field bytes:P is
--           'bytes length': with that length the queue of class P took that or less
-- ARGV[13]  bytes that a queue may take, compressed as the server keeps it
-- Reply     none of its own
-- Cost      O(1); O(bytes / 8 KB) where it is measured: when first met, and ever more
--           often as it fills up, some 20 times. A full one is measured again when it
--           is a 64th shorter
-- Repeat    what was pushed twice counts twice until it is measured
local MOST_BYTES = tonumber(ARGV[13])
local LONG = MOST_BYTES / 16384 -- shorter ones are not looked at: no entry is longer than that, or hardly any

-- known_bytes is what is known of a queue.
local function known_bytes(site_key, p)
  local bytes, length = string.match(redis.call('HGET', site_key, 'bytes:' .. p) or '', '^(%d+) (%d+)$')
  return tonumber(bytes), tonumber(length)
end

-- length_of is the length of a queue that an entry is for; most if it was found full.
local function length_of(key, site_key, entry, most)
  local length = redis.call('LLEN', key)
  if not heavy or length < LONG then return length end
  local bytes, at = known_bytes(site_key, class(entry))
  return bytes and bytes >= MOST_BYTES and length >= at * 63 / 64 and most or length
end

-- measure_list keeps what a long queue takes after a push that made it so long.
local function measure_list(site_key, key, length, entries)
  local p = class(entries[1])
  local bytes, at = known_bytes(site_key, p)
  if bytes then
    for _, entry in ipairs(entries) do bytes = bytes + #entry + 8 end
  end

  -- Not met yet since it is long, or others pushed too, or it may be full.
  if not bytes or length < LONG + 1000 or length > at + #entries + 1000 or bytes >= MOST_BYTES then
    local used = redis.pcall('MEMORY', 'USAGE', key, 'SAMPLES', 0)
    bytes = type(used) == 'number' and used or 0 -- MEMORY is forbidden
    if bytes >= MOST_BYTES * 63 / 64 then
      bytes = MOST_BYTES
      redis.call('HSET', KEYS[1], 'heavy', 1)
    end
  end
  redis.call('HSET', site_key, 'bytes:' .. p, string.format('%.0f %.0f', bytes, length))
end
