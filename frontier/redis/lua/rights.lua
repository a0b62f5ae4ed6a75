-- rights: tries every command that scripts use, on a key of its own, so that a program
-- whose user of Redis lacks one fails at its start. acl_check_cmd may crash Redis 7.0.
-- KEYS[1]  a name that nothing else uses; deleted afterwards
-- KEYS[2]  never, as in the prelude: no script runs while the slot moves
-- ARGV[1]  0
-- Reply    the commands that the user may not run there
-- Cost     O(1), some 30 commands
-- Repeat   tries again
local KEY = KEYS[1]
local refused = {}

-- may runs a command, and notes its name when the user lacks the right.
local function may(...)
  local reply = redis.pcall(...)
  local text = type(reply) == 'table' and reply.err or ''
  for _, refusal in ipairs {'user executing', 'ACL failure', 'NOPERM'} do -- of Redis, of Valkey, of both
    if string.find(text, refusal, 1, true) then
      refused[#refused + 1] = (...)
      break
    end
  end
end

-- A hash.
may('HSET', KEY, 'a', 1)
may('HINCRBY', KEY, 'a', 1)
may('HGET', KEY, 'a')
may('HMGET', KEY, 'a')
may('HGETALL', KEY)
may('HLEN', KEY)
may('HKEYS', KEY)
may('HEXISTS', KEY, 'a')
may('HSTRLEN', KEY, 'a')
may('HDEL', KEY, 'a')

-- A zset.
may('ZADD', KEY, 1, 'a')
may('ZCARD', KEY)
may('ZCOUNT', KEY, 0, 0)
may('ZSCORE', KEY, 'a')
may('ZMSCORE', KEY, 'a')
may('ZRANGE', KEY, 0, 0)
may('ZREM', KEY, 'a')
may('ZREMRANGEBYSCORE', KEY, 0, 0)

-- A list.
may('RPUSH', KEY, 'a')
may('LPUSH', KEY, 'b')
may('LLEN', KEY)
may('LINDEX', KEY, 0)
may('LRANGE', KEY, 0, 0)
may('LREM', KEY, 1, 'c')
may('LTRIM', KEY, 0, 1)
may('LPOP', KEY)
may('DEL', KEY)

-- A string, and what goes for all.
may('SET', KEY, 1)
may('INCRBY', KEY, 1)
may('GET', KEY)
may('EXISTS', KEY)
may('PERSIST', KEY)
may('PTTL', KEY)
may('PEXPIRE', KEY, 60000)
may('PEXPIREAT', KEY, 1)
may('UNLINK', KEY)

may('BF.MEXISTS', KEY, 'a')
may('BF.CARD', KEY)
may('BF.INFO', KEY)
may('BF.INSERT', KEY, 'NOCREATE', 'ITEMS', 'a')
may('TIME')
return refused
