-- heartbeat: renews a pod's record, or writes it whole again when it had expired, and renews up to 100 of its locks. Also what
-- setDraining sends, since every write to a record must write all of it together with its ttl.
--
-- KEYS[1]  set of memberIds
-- KEYS[2]  hash of the member
-- KEYS[3]  base of the locks
-- KEYS[4]  hash of features
-- ARGV[1]  memberId
-- ARGV[2]  incarnation
-- ARGV[3]  registeredAt of this incarnation; '0' when its register() was never answered: then any that was outranks it
-- ARGV[4]  ttl in ms
-- ARGV[5]  address
-- ARGV[6]  load
-- ARGV[7]  '1' when draining, else '0'
-- ARGV[8]  load that one binding adds
-- ARGV[9]  part of `pending` that was counted when the previous beat was answered, now contained in the load
-- ARGV[10] channel of changes
-- ARGV[11] ttl of a lock in ms
-- ARGV[12] '1' when this member keeps the member index, else '0'
-- ARGV[13] and on: lockIds
--
-- Reply: status, registeredAt, pending, recorded value of memberIndex ('' with 'beat'), missingCount, then the locks to write again, then those that are another pod's now
--   'beat'        the record was there
--   'restored'    it had expired, or was not this incarnation's: written anew
--   'superseded'  a later incarnation holds the memberId: nothing was written

local membersKey = KEYS[1]
local memberKey = KEYS[2]
local lockBase = KEYS[3]
local featuresKey = KEYS[4]
local memberId = ARGV[1]
local incarnation = ARGV[2]
local registeredAt = tonumber(ARGV[3])
local ttlMs = ARGV[4]
local isDraining = ARGV[7] == '1'
local channel = ARGV[10]
local lockTtlMs = ARGV[11]

local record = redis.call('HMGET', memberKey, 'address', 'incarnation', 'registeredAt', 'pending', 'draining', 'plainPending', 'load', 'bindingLoad')
local exists = record[1] and record[1] ~= ''
local isOwn = exists and record[2] == incarnation
local recordedAt = tonumber(record[3] or '') or 0
-- A record of an earlier incarnation can be there after ours expired: the later one takes its place back. One without an
-- incarnation was written with plain commands, and is adopted.
if exists and record[2] and not isOwn and recordedAt >= registeredAt then return { 'superseded', record[3] or '0', '0', '', 0 } end

local registeredAtText = isOwn and recordedAt > registeredAt and record[3] or ARGV[3]
local pendingText = '0'
if isOwn and record[4] ~= '0' then
  local pending = (tonumber(record[4] or '') or 0) - tonumber(ARGV[9])
  -- Not so for NaN, nor for the crumbs of subtracted fractions.
  if pending >= 1e-9 then pendingText = string.format('%.17g', pending) end
end
local wasDraining = exists and record[5] and record[5] ~= '' and record[5] ~= '0' and record[5] ~= 'false'

-- First of the writes, since a full server (maxmemory) allows it, and then the rest of this script as well: live pods stay live.
if exists then redis.call('PEXPIRE', memberKey, ttlMs) end
-- Also where the record was there: should the set alone be lost (eviction, a DEL), its pods come back to it.
redis.call('SADD', membersKey, memberId)
-- What is written already is not written again: of a large fleet's beats most change the load or nothing, and each command costs.
if not isOwn or record[7] ~= ARGV[6] or record[4] ~= pendingText or record[1] ~= ARGV[5] or record[8] ~= ARGV[8] or record[3] ~= registeredAtText then
  redis.call('HSET', memberKey, 'address', ARGV[5], 'load', ARGV[6], 'incarnation', incarnation, 'registeredAt', registeredAtText,
    'bindingLoad', ARGV[8], 'pending', pendingText)
end
if record[6] then redis.call('HDEL', memberKey, 'plainPending') end
if isDraining and record[5] ~= '1' then redis.call('HSET', memberKey, 'draining', '1') end
if record[5] and not isDraining then redis.call('HDEL', memberKey, 'draining') end
if not exists then redis.call('PEXPIRE', memberKey, ttlMs) end
if not isOwn or isDraining ~= (wasDraining or false) then
  redis.pcall('PUBLISH', channel, 'm ' .. memberId .. (isDraining and ' draining' or ' up'))
end

-- The record was lost, so all data may be: the features with it, which must not be left for the next process to decide.
local recordedIndex = ''
if not isOwn then
  redis.call('HSETNX', featuresKey, 'memberIndex', ARGV[12])
  recordedIndex = redis.call('HGET', featuresKey, 'memberIndex')
end

local missing, lost = {}, {}
for i = 13, #ARGV do
  local lockKey = lockBase .. ARGV[i]
  -- An error is a key of another type, which is not ours either.
  local lock = redis.pcall('HMGET', lockKey, 'podId', 'incarnation')
  if lock.err or (lock[1] and lock[1] ~= memberId) then
    lost[#lost + 1] = ARGV[i]
  elseif lock[1] and lock[2] == incarnation then
    redis.call('PEXPIRE', lockKey, lockTtlMs)
  else
    -- Gone, or minted by an earlier process of this memberId while our record had expired: this one is the later.
    missing[#missing + 1] = ARGV[i]
  end
end

local reply = { isOwn and 'beat' or 'restored', registeredAtText, pendingText, recordedIndex, #missing }
for i = 1, #missing do reply[#reply + 1] = missing[i] end
for i = 1, #lost do reply[#reply + 1] = lost[i] end
return reply
