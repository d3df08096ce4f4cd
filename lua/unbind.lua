-- unbind: drops a pod from a destination.
--
-- KEYS[1]  set of the destination
-- KEYS[2]  hash of the member
-- KEYS[3]  set of the destinations owned by the member
-- ARGV[1]  destinationId
-- ARGV[2]  memberId
-- ARGV[3]  channel of changes
-- ARGV[4]  '1' when the member index is kept, else '0'
-- ARGV[5]  incarnation of the member that drops itself; '' when a registry drops it
-- ARGV[6]  registeredAt of that incarnation, '0' when it never registered
--
-- Reply:
--   'unbound'     the pod was removed
--   'absent'      the pod was not in the set
--   'superseded'  the record is of a later incarnation than ARGV[5]: the binding is its successor's

local destinationKey = KEYS[1]
local memberKey = KEYS[2]
local ownedKey = KEYS[3]
local destinationId = ARGV[1]
local memberId = ARGV[2]
local channel = ARGV[3]
local hasIndex = ARGV[4] == '1'
local incarnation = ARGV[5]
local registeredAt = tonumber(ARGV[6])

if incarnation ~= '' then
  local record = redis.call('HMGET', memberKey, 'incarnation', 'registeredAt')
  local isOther = record[1] and record[1] ~= incarnation
  if isOther and (tonumber(record[2] or '') or 0) >= registeredAt then return 'superseded' end
end

local removed = redis.call('SREM', destinationKey, memberId)
if hasIndex then redis.pcall('SREM', ownedKey, destinationId) end
if removed == 0 then return 'absent' end
redis.pcall('PUBLISH', channel, 'd ' .. destinationId)

return 'unbound'
