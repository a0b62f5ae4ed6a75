-- renew: brings recrawls forward. URLs that wait for none stay as they are.
-- KEYS[1..9]  as in the prelude
-- KEYS[10..]  per site 8: its block of the prelude
-- ARGV[1]     epoch
-- ARGV[2..]   per site: its name, how many URLs; per URL its id
--             among those of its site, and ms until its recrawl at the latest
-- Reply       how many were brought forward
-- Cost        O(URLs log waiting + log sites) per site
-- Repeat      nothing is put off; a late copy may bring forward the recrawl of a URL
--             that was fetched meanwhile
local at = 1
local function next_arg()
  at = at + 1
  return ARGV[at]
end

try_site()
local forward, block = 0, 10
while ARGV[at + 1] do
  local site, n, moved = next_arg(), tonumber(next_arg()), 0
  for _ = 1, n do
    local id, within = next_arg(), tonumber(next_arg())
    moved = moved + call('ZADD', KEYS[block + RECRAWLS], 'XX', 'LT', 'CH', int(NOW + within), id)
  end
  if moved > 0 then place_site(block, site) end
  forward = forward + moved
  block = block + 8
end
return forward
