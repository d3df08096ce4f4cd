-- deregister-destination: forgets a destination with all its pods.
--
-- KEYS[1]  set of the destination
-- KEYS[2]  base of the owned sets
-- ARGV[1]  destinationId
-- ARGV[2]  channel of changes
-- ARGV[3]  '1' when the member index is kept, else '0'
--
-- Reply: how many pods it had; 0 when it was not bound

local destinationKey = KEYS[1]
local ownedBase = KEYS[2]
local destinationId = ARGV[1]
local channel = ARGV[2]
local hasIndex = ARGV[3] == '1'

local memberIds = redis.call('SMEMBERS', destinationKey)
if #memberIds == 0 then return 0 end

redis.call('DEL', destinationKey)
if hasIndex then
  for i = 1, #memberIds do redis.pcall('SREM', ownedBase .. memberIds[i], destinationId) end
end
redis.pcall('PUBLISH', channel, 'd ' .. destinationId)

return #memberIds
