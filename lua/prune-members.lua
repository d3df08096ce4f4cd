-- prune-members: takes ids without a record out of the set of members, looking at each again: one that registered meanwhile stays.
--
-- KEYS[1]  set of memberIds
-- KEYS[2]  base of the member hashes
-- ARGV     memberIds that had no record, 100 at most
--
-- Reply: how many were removed

local membersKey = KEYS[1]
local memberBase = KEYS[2]
local dead = {}

for i = 1, #ARGV do
  local address = redis.call('HGET', memberBase .. ARGV[i], 'address')
  if not address or address == '' then dead[#dead + 1] = ARGV[i] end
end

if #dead == 0 then return 0 end
return redis.call('SREM', membersKey, unpack(dead))
