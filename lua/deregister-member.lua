-- deregister-member: removes a pod's record, unless a later incarnation wrote it. Its bindings stay: they are healed by the next request.
--
-- KEYS[1]  set of memberIds
-- KEYS[2]  hash of the member
-- ARGV[1]  memberId
-- ARGV[2]  incarnation
-- ARGV[3]  registeredAt of this incarnation, '0' when it never registered
-- ARGV[4]  channel of changes
-- ARGV[5]  address of this member
--
-- Reply:
--   'deregistered'  the record was removed
--   'absent'        there was none
--   'superseded'    it is of a later incarnation, or of other software at another address: nothing was written

local membersKey = KEYS[1]
local memberKey = KEYS[2]
local memberId = ARGV[1]
local incarnation = ARGV[2]
local registeredAt = tonumber(ARGV[3])
local channel = ARGV[4]

local record = redis.call('HMGET', memberKey, 'incarnation', 'registeredAt', 'address')
local isOther = record[1] and record[1] ~= incarnation
if isOther and (tonumber(record[2] or '') or 0) >= registeredAt then return 'superseded' end
if not record[1] and record[3] and record[3] ~= ARGV[5] then return 'superseded' end

redis.call('SREM', membersKey, memberId)
if redis.call('DEL', memberKey) == 0 then return 'absent' end
redis.pcall('PUBLISH', channel, 'm ' .. memberId .. ' down')

return 'deregistered'
