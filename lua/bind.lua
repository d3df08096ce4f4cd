-- bind: adds pods to up to 32 destinations. A draining or dead pod is never bound. Each stands alone: it is bound whole or not at all,
-- and the error of one does not lose the others.
--
-- KEYS[1]  base of the destination sets
-- KEYS[2]  base of the member hashes
-- KEYS[3]  base of the owned sets
-- ARGV[1]  channel of changes
-- ARGV[2]  '1' when the member index is kept, else '0'
-- ARGV[3]  and on, for each: destinationId, memberId, incarnation of the member that binds itself ('' when a registry binds it),
--          registeredAt of that incarnation ('0' when it never registered), '1' to bind only where no other pod is bound, else '0'
--
-- Reply, one flat array, for each either
--   'error', <message>
-- or
--   'bound'       the pod was added
--   'present'     the pod was in the set already
--   'refused'     the pod is draining or has no live record
--   'superseded'  the record is of a later incarnation than the one that binds
--   'taken'       another pod is bound, and only this one may be
-- A write on a replica fails the whole call with READONLY, so that the client's reconnectOnError sees it.

local destinationBase = KEYS[1]
local memberBase = KEYS[2]
local ownedBase = KEYS[3]
local channel = ARGV[1]
local hasIndex = ARGV[2] == '1'
local call = redis.call

-- What was bound to a pod without an incarnation since its record was written last (see claim.lua), as text; '' for nothing.
local function plainPending(memberKey, load, field)
  local since, sum = string.match(field, '^(.*)/([^/]*)$')
  return since == call('PEXPIRETIME', memberKey) .. ':' .. (load or '') and sum or ''
end

local function finite(text)
  local number = tonumber(text or '')
  if number and number == number and number ~= math.huge and number ~= -math.huge then return number end
  return nil
end

local function add(destinationId, memberId, incarnation, registeredAt, isExclusive)
  local destinationKey = destinationBase .. destinationId
  local memberKey = memberBase .. memberId
  local record = call('HMGET', memberKey, 'address', 'draining', 'incarnation', 'pending', 'bindingLoad', 'plainPending', 'registeredAt', 'load')
  local draining = record[2]
  if not record[1] or record[1] == '' then return 'refused' end
  if incarnation ~= '' and record[3] and record[3] ~= incarnation then
    -- An earlier one's record stands in for ours, which expired, until our next heartbeat: it is not ours to bind by.
    return (tonumber(record[7] or '') or 0) >= registeredAt and 'superseded' or 'refused'
  end
  if draining and draining ~= '' and draining ~= '0' and draining ~= 'false' then return 'refused' end

  -- These reads also find a key of another type, before anything is written.
  local podCount = call('SCARD', destinationKey)
  local isPresent = podCount > 0 and call('SISMEMBER', destinationKey, memberId) == 1
  if isExclusive and podCount > (isPresent and 1 or 0) then return 'taken' end
  if hasIndex then call('SADD', ownedBase .. memberId, destinationId) end
  if isPresent then return 'present' end
  call('SADD', destinationKey, memberId)

  -- What the binding adds to the pod's load, until its heartbeat has counted it (see claim.lua).
  local bindingLoad = finite(record[5]) or 1
  if record[3] then
    call('HSET', memberKey, 'pending', string.format('%.17g', (finite(record[4]) or 0) + bindingLoad))
  else
    local load = record[8] or ''
    local pending = record[6] and finite(plainPending(memberKey, load, record[6])) or 0
    local since = call('PEXPIRETIME', memberKey) .. ':' .. load
    call('HSET', memberKey, 'plainPending', since .. '/' .. string.format('%.17g', pending + bindingLoad))
  end
  if podCount > 0 then redis.pcall('PUBLISH', channel, 'd ' .. destinationId) end
  return 'bound'
end

local reply = {}
for at = 3, #ARGV, 5 do
  local ok, status = pcall(add, ARGV[at], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3]), ARGV[at + 4] == '1')
  if ok then
    reply[#reply + 1] = status
  else
    local message = type(status) == 'table' and status.err or tostring(status)
    if string.sub(message, 1, 8) == 'READONLY' then return redis.error_reply(message) end
    reply[#reply + 1] = 'error'
    reply[#reply + 1] = message
  end
end

return reply
