-- resolve: reads the pods of up to 32 destinations. Writes nothing.
--
-- KEYS[1]  base of the destination sets
-- KEYS[2]  base of the member hashes
-- ARGV     destination ids
--
-- Reply, two flat arrays. Destinations share pods, so each pod is read, and told, once: `pods` has for each live one
--   memberId, address, load, pending, '1' when draining else '', remaining ttl in ms (-1: none)
-- and `answers` for each id in the order of ARGV either
--   'error', <message>
-- or
--   status      'bound'     at least one pod is live
--               'orphaned'  there are pods, all dead
--               'empty'     there are none
--   liveCount, then the places of the live pods in `pods`, from 1 on
--   deadCount, then the dead memberIds

local destinationBase = KEYS[1]
local memberBase = KEYS[2]
local call = redis.call
local pods = {}
local podCount = 0
-- Places of the pods that were read, 0 for the dead.
local places = {}
local answers = {}
local size = 0

-- What was bound to a pod without an incarnation since its record was written last (see claim.lua), as text; '' for nothing.
local function plainPending(memberKey, load, field)
  local since, sum = string.match(field, '^(.*)/([^/]*)$')
  return since == call('PEXPIRETIME', memberKey) .. ':' .. (load or '') and sum or ''
end

local function readPod(memberId)
  local memberKey = memberBase .. memberId
  local record = call('HMGET', memberKey, 'address', 'load', 'pending', 'draining', 'incarnation', 'plainPending')
  if not record[1] or record[1] == '' then return 0 end
  local at = podCount * 6
  local draining = record[4]
  pods[at + 1] = memberId
  pods[at + 2] = record[1]
  pods[at + 3] = record[2] or ''
  if record[5] then pods[at + 4] = record[3] or '' else pods[at + 4] = record[6] and plainPending(memberKey, record[2], record[6]) or '' end
  pods[at + 5] = draining and draining ~= '' and draining ~= '0' and draining ~= 'false' and '1' or ''
  pods[at + 6] = call('PTTL', memberKey)
  podCount = podCount + 1
  return podCount
end

local function read(destinationId)
  local memberIds = call('SMEMBERS', destinationBase .. destinationId)
  local statusAt = size + 1
  local liveCount, dead = 0, {}
  size = size + 2
  for i = 1, #memberIds do
    local memberId = memberIds[i]
    local place = places[memberId]
    if not place then
      place = readPod(memberId)
      places[memberId] = place
    end
    if place > 0 then
      liveCount = liveCount + 1
      size = size + 1
      answers[size] = place
    else
      dead[#dead + 1] = memberId
    end
  end
  answers[statusAt] = liveCount > 0 and 'bound' or #dead > 0 and 'orphaned' or 'empty'
  answers[statusAt + 1] = liveCount
  size = size + 1
  answers[size] = #dead
  for i = 1, #dead do answers[size + i] = dead[i] end
  size = size + #dead
end

for i = 1, #ARGV do
  local before = size
  local ok, failure = pcall(read, ARGV[i])
  if not ok then
    for at = before + 1, size do answers[at] = nil end
    answers[before + 1] = 'error'
    answers[before + 2] = type(failure) == 'table' and failure.err or tostring(failure)
    size = before + 2
  end
end

return { pods, answers }
