-- tries: runs, without effect, the commands that a script needs after its first write.
-- Where the user of Redis lacks a right, the script ends here and not in its middle.
-- KEYS[1]  meta: its epoch is set to what it is
-- KEYS[9]  a name that no key ever has, and that has none afterwards
-- ARGV[1]  epoch
-- Reply    none of its own; the server's error when a right is missing
-- Cost     O(1), some 0.3 us a command
-- Repeat   tries again
-- try_promote tries what promote_site, write_stats and keep_watermark need.
local function try_promote()
  call('HSET', META, 'epoch', epoch)
  call('EXISTS', NEVER)
  call('ZSCORE', NEVER, '')
  call('ZREM', NEVER, '')
  call('ZADD', NEVER, 'XX', 0, '')
  call('PERSIST', NEVER)
  call('HDEL', NEVER, '')
  call('HINCRBY', NEVER, '', 0)
  call('HDEL', NEVER, '')
end

-- try_admit tries what admission needs. Its first write of all is refused above
-- maxmemory: then full is true. failed is another error reply.
local function try_admit(push)
  local first = redis.pcall('HSET', META, 'epoch', epoch)
  if type(first) == 'table' then
    local full = string.find(first.err, 'OOM', 1, true)
    return full, not full and first
  end
  try_promote()
  call('DEL', NEVER)
  call(push, NEVER, '')
  call('DEL', NEVER)
end

-- try_site also tries what place_site, expire_site and free_site need.
local function try_site()
  try_promote()
  call('ZRANGE', NEVER, 0, 0)
  call('PEXPIREAT', NEVER, 1)
end

-- try_lists tries what moves entries in and out of lists.
local function try_lists()
  call('DEL', NEVER)
  call('LTRIM', NEVER, 0, -1)
  call('LPUSH', NEVER, '')
  call('DEL', NEVER)
  call('RPUSH', NEVER, '')
  call('DEL', NEVER)
end

-- try_all tries both.
local function try_all()
  try_site()
  try_lists()
end

-- is_refused reports whether a reply is that the user lacks a right.
local function is_refused(reply)
  local text = reply.err or ''
  return string.find(text, 'NOPERM', 1, true) or string.find(text, 'user executing', 1, true) or string.find(text, 'ACL failure', 1, true)
end
