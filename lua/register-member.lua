-- register-member: writes a pod's record anew and takes the memberId over from whoever had it. The last to register is the newest:
-- `registeredAt` (server time in microseconds, above that of the record found) says so to every later script.
--
-- KEYS[1]  set of memberIds
-- KEYS[2]  hash of the member
-- KEYS[3]  hash of features
-- ARGV[1]  memberId
-- ARGV[2]  incarnation
-- ARGV[3]  ttl in ms
-- ARGV[4]  address
-- ARGV[5]  load
-- ARGV[6]  '1' when draining, else '0'
-- ARGV[7]  load that one binding adds
-- ARGV[8]  channel of changes
-- ARGV[9]  '1' when this member keeps the member index, else '0'
-- ARGV[10] '1' to refuse when the prefix is recorded with the other value, else '0'
--
-- Reply: status, registeredAt, pending, recorded value of memberIndex
--   'registered'  the record is written
--   'mismatch'    the prefix is in use with the other value, and ARGV[10] is on: nothing was written

local membersKey = KEYS[1]
local memberKey = KEYS[2]
local featuresKey = KEYS[3]
local memberId = ARGV[1]
local incarnation = ARGV[2]
local ttlMs = ARGV[3]
local isDraining = ARGV[6] == '1'
local channel = ARGV[8]

local recordedIndex = redis.call('HGET', featuresKey, 'memberIndex') or ARGV[9]
if recordedIndex ~= ARGV[9] and ARGV[10] == '1' then return { 'mismatch', '0', '0', recordedIndex } end

local record = redis.call('HMGET', memberKey, 'incarnation', 'registeredAt', 'pending')
local time = redis.call('TIME')
local registeredAt = time[1] * 1000000 + time[2]
local earlier = tonumber(record[2] or '') or 0
if registeredAt <= earlier then registeredAt = earlier + 1 end
registeredAt = string.format('%.0f', registeredAt)
-- Registering again keeps what was bound since the last beat; a successor starts without it.
local pending = record[1] == incarnation and record[3] or '0'

redis.call('SADD', membersKey, memberId)
redis.call('HSET', featuresKey, 'memberIndex', recordedIndex)
redis.call('DEL', memberKey)
redis.call('HSET', memberKey, 'address', ARGV[4], 'load', ARGV[5], 'incarnation', incarnation, 'registeredAt', registeredAt,
  'bindingLoad', ARGV[7], 'pending', pending)
if isDraining then redis.call('HSET', memberKey, 'draining', '1') end
redis.call('PEXPIRE', memberKey, ttlMs)
redis.pcall('PUBLISH', channel, 'm ' .. memberId .. (isDraining and ' draining' or ' up'))

return { 'registered', registeredAt, pending, recordedIndex }
