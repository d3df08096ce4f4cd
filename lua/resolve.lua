-- resolve: reads the pods of up to 32 destinations. Writes nothing.
--
-- KEYS[1]  base of the destination sets
-- KEYS[2]  base of the member hashes
-- ARGV     destination ids
--
-- Reply, one flat array, for each id in the order of ARGV either
--   'error', <message>
-- or
--   status      'bound'     at least one pod is live
--               'orphaned'  there are pods, all dead
--               'empty'     there are none
--   liveCount, then for each live pod: memberId, address, load, pending, '1' when draining else '', remaining ttl in ms (-1: none)
--   deadCount, then the dead memberIds
--   '0'         (claim answers with figures here)

local destinationBase = KEYS[1]
local memberBase = KEYS[2]
local call = redis.call
local reply = {}
local size = 0

local function push(value)
  size = size + 1
  reply[size] = value
end

-- What was bound to a pod without an incarnation since its record was written last (see claim.lua), as text; '' for nothing.
local function plainPending(memberKey, load, field)
  local since, sum = string.match(field, '^(.*)/([^/]*)$')
  return since == call('PEXPIRETIME', memberKey) .. ':' .. (load or '') and sum or ''
end

local function read(destinationId)
  local memberIds = call('SMEMBERS', destinationBase .. destinationId)
  local statusAt = size + 1
  local liveCount, dead = 0, {}
  size = size + 2
  for i = 1, #memberIds do
    local memberId = memberIds[i]
    local memberKey = memberBase .. memberId
    local record = call('HMGET', memberKey, 'address', 'load', 'pending', 'draining', 'incarnation', 'plainPending')
    if record[1] and record[1] ~= '' then
      liveCount = liveCount + 1
      push(memberId)
      push(record[1])
      push(record[2] or '')
      if record[5] then push(record[3] or '') else push(record[6] and plainPending(memberKey, record[2], record[6]) or '') end
      local draining = record[4]
      push(draining and draining ~= '' and draining ~= '0' and draining ~= 'false' and '1' or '')
      push(call('PTTL', memberKey))
    else
      dead[#dead + 1] = memberId
    end
  end
  reply[statusAt] = liveCount > 0 and 'bound' or #dead > 0 and 'orphaned' or 'empty'
  reply[statusAt + 1] = liveCount
  push(#dead)
  for i = 1, #dead do push(dead[i]) end
  push('0')
end

for i = 1, #ARGV do
  local before = size
  local ok, failure = pcall(read, ARGV[i])
  if not ok then
    while size > before do
      reply[size] = nil
      size = size - 1
    end
    push('error')
    push(type(failure) == 'table' and failure.err or tostring(failure))
  end
end

return reply
