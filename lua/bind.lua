-- bind: adds a pod to a destination. A draining or dead pod is never bound.
--
-- KEYS[1]  set of the destination
-- KEYS[2]  hash of the member
-- KEYS[3]  set of the destinations owned by the member
-- ARGV[1]  destinationId
-- ARGV[2]  memberId
-- ARGV[3]  channel of changes
-- ARGV[4]  '1' when the member index is kept, else '0'
-- ARGV[5]  incarnation of the member that binds itself; '' when a registry binds it
--
-- Reply:
--   'bound'       the pod was added
--   'present'     the pod was in the set already
--   'refused'     the pod is draining or has no live record
--   'superseded'  the record is of another incarnation than ARGV[5]

local destinationKey = KEYS[1]
local memberKey = KEYS[2]
local ownedKey = KEYS[3]
local destinationId = ARGV[1]
local memberId = ARGV[2]
local channel = ARGV[3]
local hasIndex = ARGV[4] == '1'
local incarnation = ARGV[5]

local record = redis.call('HMGET', memberKey, 'address', 'draining', 'incarnation', 'pending', 'bindingLoad', 'plainPending')
local draining = record[2]
if not record[1] or record[1] == '' then return 'refused' end
if incarnation ~= '' and record[3] and record[3] ~= incarnation then return 'superseded' end
if draining and draining ~= '' and draining ~= '0' and draining ~= 'false' then return 'refused' end

local function finite(text)
  local number = tonumber(text or '')
  if number and number == number and number ~= math.huge and number ~= -math.huge then return number end
  return nil
end

-- These reads also find a key of another type, before anything is written.
local isFirst = redis.call('SCARD', destinationKey) == 0
local isPresent = redis.call('SISMEMBER', destinationKey, memberId) == 1
if hasIndex then redis.call('SADD', ownedKey, destinationId) end
if isPresent then return 'present' end
redis.call('SADD', destinationKey, memberId)

-- What the binding adds to the pod's load, until its heartbeat has counted it (see claim.lua).
local bindingLoad = finite(record[5]) or 1
if record[3] then
  redis.call('HSET', memberKey, 'pending', string.format('%.17g', (finite(record[4]) or 0) + bindingLoad))
else
  local expiresAt = tostring(redis.call('PEXPIRETIME', memberKey))
  local since, sum = string.match(record[6] or '', '^(.*)/(.*)$')
  local pending = since == expiresAt and finite(sum) or 0
  redis.call('HSET', memberKey, 'plainPending', expiresAt .. '/' .. string.format('%.17g', pending + bindingLoad))
end
if not isFirst then redis.pcall('PUBLISH', channel, 'd ' .. destinationId) end

return 'bound'
