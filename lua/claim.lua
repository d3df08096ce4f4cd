-- claim: reads the pods of up to 32 destinations and gives each one a pod where it has no live one and the caller allows it.
-- Each decision stands alone: it is made whole or not at all, and the error of one does not lose the others.
--
-- The candidates come from a view of the members that may be a second old, and other registries choose at the same moment. So the
-- choice among them is made here: the least load + pending of those that are live and not draining. What a claim adds to its pod is
-- kept in the record until the pod's heartbeat has counted it: in `pending` for a Member, in `plainPending` (expiry of the record in
-- ms, a colon, its load, a slash, the sum) for a record written with plain commands, whose next EXPIRE or load voids it.
--
-- KEYS[1]  base of the destination sets
-- KEYS[2]  base of the member hashes
-- KEYS[3]  base of the owned sets
-- ARGV[1]  channel of changes
-- ARGV[2]  '1' when the member index is kept, else '0'
-- ARGV[3]  and on, for each id: destinationId, '1' or '0' for claimOnMiss, '1' or '0' for reassignOrphans, number of candidates, then
--          their memberIds, the preferred one first
--
-- Reply, three flat arrays. Destinations share pods, so each pod is read, written and told once: `pods` has for each pod that is named
--   memberId, address, load, pending, '1' when draining else '', remaining ttl in ms (-1: none)
-- `answers` for each id either
--   'error', <message>
-- or
--   status      'bound'       a live pod was there: nothing changed
--               'claimed'     the destination had no pods and has one now
--               'reassigned'  its pods were dead and were replaced by one
--               'refused'     a pod was needed and no candidate is live and not draining: nothing changed
--               'orphaned'    all dead, and reassignOrphans is off: nothing changed
--               'empty'       no pods, and claimOnMiss is off: nothing changed
--   liveCount, then the places of the live pods in `pods`, from 1 on
--   deadCount, then the dead memberIds (after 'reassigned': those that were replaced)
-- and `figures` for each usable candidate: memberId, load, pending, as they are now
-- A write on a replica fails the whole call with READONLY, so that the client's reconnectOnError sees it.

local destinationBase = KEYS[1]
local memberBase = KEYS[2]
local ownedBase = KEYS[3]
local channel = ARGV[1]
local hasIndex = ARGV[2] == '1'
local call = redis.call

local function isDraining(field)
  return field and field ~= '' and field ~= '0' and field ~= 'false'
end

-- What was bound to a pod without an incarnation since its record was written last, as text; '' for nothing.
local function plainPending(memberKey, load, field)
  local since, sum = string.match(field, '^(.*)/([^/]*)$')
  return since == call('PEXPIRETIME', memberKey) .. ':' .. (load or '') and sum or ''
end

-- A number, or nil for text that is none, NaN and the infinities.
local function finite(text)
  local number = tonumber(text or '')
  if number and number == number and number ~= math.huge and number ~= -math.huge then return number end
  return nil
end

local function message(failure)
  return type(failure) == 'table' and failure.err or tostring(failure)
end

local pods = {}
local podCount = 0
-- The pods of this call by memberId, false for the dead: nobody else writes in between.
local podsRead = {}

local function lookUp(memberId)
  local pod = podsRead[memberId]
  if pod ~= nil then return pod end
  local key = memberBase .. memberId
  local record = call('HMGET', key, 'address', 'load', 'pending', 'draining', 'incarnation', 'plainPending', 'bindingLoad')
  if record[1] and record[1] ~= '' then
    local isPlain = not record[5]
    local pending = record[3] or ''
    if isPlain then pending = record[6] and plainPending(key, record[2], record[6]) or '' end
    pod = {
      memberId = memberId, key = key, address = record[1], load = record[2] or '', pending = pending,
      isDraining = isDraining(record[4]), isPlain = isPlain, bindingLoad = record[7]
    }
  else
    pod = false
  end
  podsRead[memberId] = pod
  return pod
end

-- The place of a live pod in the reply.
local function placeOf(pod)
  if not pod.place then
    local at = podCount * 6
    pods[at + 1] = pod.memberId
    pods[at + 2] = pod.address
    pods[at + 3] = pod.load
    pods[at + 4] = pod.pending
    pods[at + 5] = pod.isDraining and '1' or ''
    pods[at + 6] = call('PTTL', pod.key)
    podCount = podCount + 1
    pod.place = podCount
  end
  return pod.place
end

-- Candidates that were looked at and are usable, in the order in which they came.
local usable = {}

-- The usable candidate of least load + pending, the first of equals.
local function choose(memberIds)
  local best, least
  for i = 1, #memberIds do
    local pod = lookUp(memberIds[i])
    if pod and not pod.isDraining then
      if not pod.total then
        local load = finite(pod.load)
        pod.sum = finite(pod.pending) or 0
        pod.pending = string.format('%.17g', pod.sum)
        pod.total = load and load + pod.sum or math.huge
        pod.weight = finite(pod.bindingLoad) or 1
        usable[#usable + 1] = pod
      end
      if not best or pod.total < least then best, least = pod, pod.total end
    end
  end
  return best
end

-- Pods that were given destinations. What that adds to them is written once for each, when all is decided.
local changed = {}

local function bind(destinationId, pod, dead)
  local destinationKey = destinationBase .. destinationId
  -- Additions first: under maxmemory the first of them is refused, and nothing has been written.
  if hasIndex then call('SADD', ownedBase .. pod.memberId, destinationId) end
  call('SADD', destinationKey, pod.memberId)
  if not pod.isChanged then changed[#changed + 1] = pod end
  pod.isChanged = true
  pod.sum = pod.sum + pod.weight
  pod.total = pod.total + pod.weight
  for first = 1, #dead, 500 do
    call('SREM', destinationKey, unpack(dead, first, math.min(first + 499, #dead)))
  end
  if hasIndex then
    for i = 1, #dead do redis.pcall('SREM', ownedBase .. dead[i], destinationId) end
  end
  -- A message is a courtesy to caches: a user that may not publish still gets its pod.
  if #dead > 0 then redis.pcall('PUBLISH', channel, 'd ' .. destinationId) end
end

local function writePending(pod)
  pod.pending = string.format('%.17g', pod.sum)
  if pod.place then pods[pod.place * 6 - 2] = pod.pending end
  if pod.isPlain then
    call('HSET', pod.key, 'plainPending', call('PEXPIRETIME', pod.key) .. ':' .. pod.load .. '/' .. pod.pending)
  else
    call('HSET', pod.key, 'pending', pod.pending)
  end
end

-- Status, places of the live pods, ids of the dead.
local function decide(destinationId, claimOnMiss, reassignOrphans, candidates)
  local live, dead = {}, {}
  local memberIds = call('SMEMBERS', destinationBase .. destinationId)
  for i = 1, #memberIds do
    local pod = lookUp(memberIds[i])
    if pod then live[#live + 1] = placeOf(pod) else dead[#dead + 1] = memberIds[i] end
  end
  if #live > 0 then return 'bound', live, dead end
  if #dead == 0 and not claimOnMiss then return 'empty', live, dead end
  if #dead > 0 and not reassignOrphans then return 'orphaned', live, dead end
  local pod = choose(candidates)
  if not pod then return 'refused', live, dead end
  live[1] = placeOf(pod)
  bind(destinationId, pod, dead)
  return #dead > 0 and 'reassigned' or 'claimed', live, dead
end

local answers = {}
local size = 0
local at = 3
while at <= #ARGV do
  local candidates = {}
  local candidateCount = tonumber(ARGV[at + 3])
  for i = 1, candidateCount do candidates[i] = ARGV[at + 3 + i] end
  local ok, status, live, dead = pcall(decide, ARGV[at], ARGV[at + 1] == '1', ARGV[at + 2] == '1', candidates)
  at = at + 4 + candidateCount
  if ok then
    answers[size + 1] = status
    answers[size + 2] = #live
    size = size + 2
    for i = 1, #live do answers[size + i] = live[i] end
    size = size + #live + 1
    answers[size] = #dead
    for i = 1, #dead do answers[size + i] = dead[i] end
    size = size + #dead
  else
    local text = message(status)
    if string.sub(text, 1, 8) == 'READONLY' then return redis.error_reply(text) end
    answers[size + 1] = 'error'
    answers[size + 2] = text
    size = size + 2
  end
end

-- The bindings are made. Should one of these fail, its pod counts for idler than it is until its next beat.
for i = 1, #changed do pcall(writePending, changed[i]) end

local figures = {}
for i = 1, #usable do
  figures[i * 3 - 2] = usable[i].memberId
  figures[i * 3 - 1] = usable[i].load
  figures[i * 3] = usable[i].pending
end

return { pods, answers, figures }
