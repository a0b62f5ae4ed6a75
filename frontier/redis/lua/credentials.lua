-- credentials: keeps the credentials of an origin with its site.
-- KEYS[1..9]   as in the prelude
-- KEYS[10..17] the block of the site
-- ARGV[1]      epoch
-- ARGV[2]      origins that a site may have
-- ARGV[3]      the origin: scheme, host and port
-- ARGV[4]      user name and password, as in a URL
-- Reply        1 kept, 0 refused: the site has those of ARGV[2] other origins
-- Cost         O(origins of the site)
-- Repeat       sets again
local most, origin, credentials = tonumber(ARGV[2]), ARGV[3], ARGV[4]
local BLOCK = 10
local SITE = KEYS[BLOCK]
local s = call('HMGET', SITE, 'auth', 'clock')
local kept, clock = s[1] or '', tonumber(s[2]) or 0

local lines, n = {}, 0
for line in string.gmatch(kept, '[^\n]+\n') do
  if string.sub(line, 1, #origin + 1) ~= origin .. ' ' then
    n = n + 1
    lines[n] = line
  end
end
if n >= most then return 0 end
lines[n + 1] = origin .. ' ' .. credentials .. '\n'

try_site()
call('HSET', SITE, 'auth', table.concat(lines))
expire_site(BLOCK, clock)
return 1
