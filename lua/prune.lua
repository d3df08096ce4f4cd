-- prune: takes the dead pods out of a destination's set, looking again: a live one stays, and a destination of which all are dead is left
-- as it is (to replace them is a reassignment, which somebody has to ask for).
--
-- KEYS[1]  set of the destination
-- KEYS[2]  base of the member hashes
-- KEYS[3]  base of the owned sets
-- ARGV[1]  destinationId
-- ARGV[2]  channel of changes
-- ARGV[3]  '1' when the member index is kept, else '0'
--
-- Reply: how many pods were removed

local destinationKey = KEYS[1]
local memberBase = KEYS[2]
local ownedBase = KEYS[3]
local destinationId = ARGV[1]
local channel = ARGV[2]
local hasIndex = ARGV[3] == '1'

local memberIds = redis.call('SMEMBERS', destinationKey)
local dead = {}
for i = 1, #memberIds do
  local address = redis.call('HGET', memberBase .. memberIds[i], 'address')
  if not address or address == '' then dead[#dead + 1] = memberIds[i] end
end
if #dead == 0 or #dead == #memberIds then return 0 end

for first = 1, #dead, 500 do
  redis.call('SREM', destinationKey, unpack(dead, first, math.min(first + 499, #dead)))
end
if hasIndex then
  for i = 1, #dead do redis.pcall('SREM', ownedBase .. dead[i], destinationId) end
end
redis.pcall('PUBLISH', channel, 'd ' .. destinationId)

return #dead
