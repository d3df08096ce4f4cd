-- deregister-destination: forgets a destination with all its pods, where the caller's condition holds.
--
-- KEYS[1]  set of the destination
-- KEYS[2]  base of the owned sets
-- KEYS[3]  base of the member hashes
-- ARGV[1]  destinationId
-- ARGV[2]  channel of changes
-- ARGV[3]  '1' when the member index is kept, else '0'
-- ARGV[4]  memberId: only if that pod is one of its pods; '' for whichever
-- ARGV[5]  '1': only if all its pods are dead; else '0'
--
-- Reply: how many pods it had; 0 when it was not bound, or the condition does not hold: nothing was written

local destinationKey = KEYS[1]
local ownedBase = KEYS[2]
local memberBase = KEYS[3]
local destinationId = ARGV[1]
local channel = ARGV[2]
local hasIndex = ARGV[3] == '1'
local holder = ARGV[4]
local isOrphanOnly = ARGV[5] == '1'

local memberIds = redis.call('SMEMBERS', destinationKey)
if #memberIds == 0 then return 0 end
if holder ~= '' and redis.call('SISMEMBER', destinationKey, holder) == 0 then return 0 end
if isOrphanOnly then
  for i = 1, #memberIds do
    local address = redis.call('HGET', memberBase .. memberIds[i], 'address')
    if address and address ~= '' then return 0 end
  end
end

redis.call('DEL', destinationKey)
if hasIndex then
  for i = 1, #memberIds do redis.pcall('SREM', ownedBase .. memberIds[i], destinationId) end
end
redis.pcall('PUBLISH', channel, 'd ' .. destinationId)

return #memberIds
