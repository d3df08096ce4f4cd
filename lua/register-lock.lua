-- register-lock: writes a lock whole, in place of any earlier one of that id.
--
-- KEYS[1]  hash of the lock
-- KEYS[2]  hash of the member
-- ARGV[1]  memberId
-- ARGV[2]  incarnation
-- ARGV[3]  registeredAt of this incarnation, '0' when it never registered
-- ARGV[4]  ttl in ms
-- ARGV[5]  destinationId
-- ARGV[6]  and on: fields of the application, name and value in turn
--
-- Reply:
--   'registered'  the lock is written
--   'superseded'  the member's record is of a later incarnation: nothing was written

local lockKey = KEYS[1]
local memberKey = KEYS[2]
local incarnation = ARGV[2]
local registeredAt = tonumber(ARGV[3])

local record = redis.call('HMGET', memberKey, 'incarnation', 'registeredAt')
local isOther = record[1] and record[1] ~= incarnation
if isOther and (tonumber(record[2] or '') or 0) >= registeredAt then return 'superseded' end

-- An addition first: a full server (maxmemory) refuses it, and nothing has been written.
redis.call('HSET', lockKey, 'podId', ARGV[1])
redis.call('DEL', lockKey)
redis.call('HSET', lockKey, 'podId', ARGV[1], 'destinationId', ARGV[5], 'incarnation', incarnation)
for i = 6, #ARGV, 2 do redis.call('HSET', lockKey, ARGV[i], ARGV[i + 1]) end
redis.call('PEXPIRE', lockKey, ARGV[4])

return 'registered'
