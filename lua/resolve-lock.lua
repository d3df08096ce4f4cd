-- resolve-lock: finds the pods that hold up to 32 locks. Writes nothing.
--
-- KEYS[1]  base of the lock hashes
-- KEYS[2]  base of the member hashes
-- ARGV     lockIds
--
-- Reply, one flat array, for each id in the order of ARGV either
--   'error', <message>
-- or
--   'held', memberId, address
--   'absent'  no such lock, or its pod is dead or has restarted since; a lock without an incarnation holds while its pod lives

local lockBase = KEYS[1]
local memberBase = KEYS[2]
local call = redis.call

local function findPod(lockId)
  local lock = call('HMGET', lockBase .. lockId, 'podId', 'incarnation')
  if not lock[1] then return end
  local record = call('HMGET', memberBase .. lock[1], 'address', 'incarnation')
  if not record[1] or record[1] == '' then return end
  if lock[2] and lock[2] ~= record[2] then return end
  return lock[1], record[1]
end

local reply = {}
for i = 1, #ARGV do
  local ok, memberId, address = pcall(findPod, ARGV[i])
  local size = #reply
  if not ok then
    reply[size + 1] = 'error'
    reply[size + 2] = type(memberId) == 'table' and memberId.err or tostring(memberId)
  elseif memberId then
    reply[size + 1] = 'held'
    reply[size + 2] = memberId
    reply[size + 3] = address
  else
    reply[size + 1] = 'absent'
  end
end

return reply
