-- rights: tries every command that scripts use, on a key of its own. A user of
-- Redis who lacks one would have a script break off in the middle: a URL known
-- and never queued. Asking (acl_check_cmd) is no way: Redis 7.0 may crash.
-- KEYS[1]  a name that is used for nothing else; gone afterwards
-- KEYS[2]  never, as in the prelude: no script runs while the slot moves
-- ARGV[1]  0
-- Reply    the commands that the user may not run there
-- Cost     O(1), some 30 commands
-- Repeat   tries again
local no = {}
local function may(...)
  local reply = redis.pcall(...)
  local text = type(reply) == 'table' and reply.err or ''
  for _, refusal in ipairs {'user executing', 'ACL failure', 'NOPERM'} do -- of Redis, of Valkey, of both
    if string.find(text, refusal, 1, true) then no[#no + 1] = (...) break end
  end
end
local k = KEYS[1]
may('HSET', k, 'a', 1) may('HINCRBY', k, 'a', 1) may('HGET', k, 'a') may('HMGET', k, 'a') may('HGETALL', k) may('HLEN', k) may('HSTRLEN', k, 'a') may('HDEL', k, 'a')
may('ZADD', k, 1, 'a') may('ZCARD', k) may('ZSCORE', k, 'a') may('ZMSCORE', k, 'a') may('ZRANGE', k, 0, 0) may('ZREM', k, 'a')
may('RPUSH', k, 'a') may('LPUSH', k, 'b') may('LLEN', k) may('LINDEX', k, 0) may('LRANGE', k, 0, 0) may('LREM', k, 1, 'c') may('LTRIM', k, 0, 1) may('LPOP', k)
may('DEL', k)
may('SET', k, 1) may('INCRBY', k, 1) may('GET', k) may('EXISTS', k) may('PERSIST', k)
may('PTTL', k) may('PEXPIRE', k, 60000) may('PEXPIREAT', k, 1) may('UNLINK', k)
may('BF.MEXISTS', k, 'a') may('BF.INSERT', k, 'NOCREATE', 'ITEMS', 'a')
may('TIME')
return no
