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
-- ARGV[6]  registeredAt of that incarnation, '0' when it never registered
-- ARGV[7]  '1' to bind only where no other pod is bound, else '0'
--
-- Reply:
--   'bound'       the pod was added
--   'present'     the pod was in the set already
--   'refused'     the pod is draining or has no live record
--   'superseded'  the record is of a later incarnation than ARGV[5]
--   'taken'       another pod is bound, and ARGV[7] is on

local destinationKey = KEYS[1]
local memberKey = KEYS[2]
local ownedKey = KEYS[3]
local destinationId = ARGV[1]
local memberId = ARGV[2]
local channel = ARGV[3]
local hasIndex = ARGV[4] == '1'
local incarnation = ARGV[5]
local registeredAt = tonumber(ARGV[6])
local isExclusive = ARGV[7] == '1'

local record = redis.call('HMGET', memberKey, 'address', 'draining', 'incarnation', 'pending', 'bindingLoad', 'plainPending', 'registeredAt', 'load')
local draining = record[2]
if not record[1] or record[1] == '' then return 'refused' end
if incarnation ~= '' and record[3] and record[3] ~= incarnation then
  -- An earlier one's record stands in for ours, which expired, until our next heartbeat: it is not ours to bind by.
  return (tonumber(record[7] or '') or 0) >= registeredAt and 'superseded' or 'refused'
end
if draining and draining ~= '' and draining ~= '0' and draining ~= 'false' then return 'refused' end

-- What was bound to a pod without an incarnation since its record was written last (see claim.lua), as text; '' for nothing.
local function plainPending(load, field)
  local since, sum = string.match(field, '^(.*)/([^/]*)$')
  return since == redis.call('PEXPIRETIME', memberKey) .. ':' .. (load or '') and sum or ''
end

local function finite(text)
  local number = tonumber(text or '')
  if number and number == number and number ~= math.huge and number ~= -math.huge then return number end
  return nil
end

-- These reads also find a key of another type, before anything is written.
local podCount = redis.call('SCARD', destinationKey)
local isPresent = redis.call('SISMEMBER', destinationKey, memberId) == 1
if isExclusive and podCount > (isPresent and 1 or 0) then return 'taken' end
if hasIndex then redis.call('SADD', ownedKey, destinationId) end
if isPresent then return 'present' end
redis.call('SADD', destinationKey, memberId)

-- What the binding adds to the pod's load, until its heartbeat has counted it (see claim.lua).
local bindingLoad = finite(record[5]) or 1
if record[3] then
  redis.call('HSET', memberKey, 'pending', string.format('%.17g', (finite(record[4]) or 0) + bindingLoad))
else
  local load = record[8] or ''
  local pending = record[6] and finite(plainPending(load, record[6])) or 0
  local since = redis.call('PEXPIRETIME', memberKey) .. ':' .. load
  redis.call('HSET', memberKey, 'plainPending', since .. '/' .. string.format('%.17g', pending + bindingLoad))
end
if podCount > 0 then redis.pcall('PUBLISH', channel, 'd ' .. destinationId) end

return 'bound'
