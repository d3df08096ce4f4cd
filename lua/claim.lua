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
-- Reply, one flat array, for each id either
--   'error', <message>
-- or
--   status      'bound'       a live pod was there: nothing changed
--               'claimed'     the destination had no pods and has one now
--               'reassigned'  its pods were dead and were replaced by one
--               'refused'     a pod was needed and no candidate is live and not draining: nothing changed
--               'orphaned'    all dead, and reassignOrphans is off: nothing changed
--               'empty'       no pods, and claimOnMiss is off: nothing changed
--   liveCount, then for each live pod: memberId, address, load, pending, '1' when draining else '', remaining ttl in ms (-1: none)
--   deadCount, then the dead memberIds (after 'reassigned': those that were replaced)
--   figureCount, then for each usable candidate: memberId, load, pending, as they are now
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

-- Pods of a destination, in the form of the reply.
local function readPods(destinationId)
  local live, dead = {}, {}
  local memberIds = call('SMEMBERS', destinationBase .. destinationId)
  for i = 1, #memberIds do
    local memberId = memberIds[i]
    local memberKey = memberBase .. memberId
    local record = call('HMGET', memberKey, 'address', 'load', 'pending', 'draining', 'incarnation', 'plainPending')
    if record[1] and record[1] ~= '' then
      local draining = isDraining(record[4]) and '1' or ''
      local pending = record[3] or ''
      if not record[5] then pending = record[6] and plainPending(memberKey, record[2], record[6]) or '' end
      local pod = { memberId, record[1], record[2] or '', pending, draining, call('PTTL', memberKey) }
      for j = 1, 6 do live[#live + 1] = pod[j] end
    else
      dead[#dead + 1] = memberId
    end
  end
  return live, dead
end

-- A number, or nil for text that is none, NaN and the infinities.
local function finite(text)
  local number = tonumber(text or '')
  if number and number == number and number ~= math.huge and number ~= -math.huge then return number end
  return nil
end

-- The candidates of this call by memberId, false for those that are not usable: many claims of one call name the same few pods, and
-- nobody else writes in between.
local candidatesRead = {}

local function readCandidate(memberId)
  local memberKey = memberBase .. memberId
  local record = call('HMGET', memberKey, 'address', 'load', 'draining', 'incarnation', 'pending', 'bindingLoad', 'plainPending')
  if not record[1] or record[1] == '' or isDraining(record[3]) then return false end
  local isPlain = not record[4]
  local pendingText = record[5]
  if isPlain then pendingText = record[7] and plainPending(memberKey, record[2], record[7]) end
  local pending = finite(pendingText) or 0
  return {
    memberId = memberId, key = memberKey, address = record[1], load = record[2] or '', number = finite(record[2]),
    pending = pending, pendingText = string.format('%.17g', pending), bindingLoad = finite(record[6]) or 1, isPlain = isPlain, ttl = call('PTTL', memberKey)
  }
end

-- The usable candidate of least load + pending, the first of equals; and the figures of all usable ones.
local function choose(memberIds)
  local best, least, bestAt
  local figures = {}
  for i = 1, #memberIds do
    local memberId = memberIds[i]
    local candidate = candidatesRead[memberId]
    if candidate == nil then
      candidate = readCandidate(memberId)
      candidatesRead[memberId] = candidate
    end
    if candidate then
      local total = candidate.number and candidate.number + candidate.pending or math.huge
      local size = #figures
      figures[size + 1] = memberId
      figures[size + 2] = candidate.load
      figures[size + 3] = candidate.pendingText
      if not best or total < least then best, least, bestAt = candidate, total, size + 3 end
    end
  end
  return best, figures, bestAt
end

local function bind(destinationId, pod, dead)
  local destinationKey = destinationBase .. destinationId
  -- Additions first: under maxmemory the first of them is refused, and nothing has been written.
  if hasIndex then call('SADD', ownedBase .. pod.memberId, destinationId) end
  call('SADD', destinationKey, pod.memberId)
  pod.pending = pod.pending + pod.bindingLoad
  pod.pendingText = string.format('%.17g', pod.pending)
  if pod.isPlain then
    call('HSET', pod.key, 'plainPending', call('PEXPIRETIME', pod.key) .. ':' .. pod.load .. '/' .. pod.pendingText)
  else
    call('HSET', pod.key, 'pending', pod.pendingText)
  end
  for first = 1, #dead, 500 do
    call('SREM', destinationKey, unpack(dead, first, math.min(first + 499, #dead)))
  end
  if hasIndex then
    for i = 1, #dead do redis.pcall('SREM', ownedBase .. dead[i], destinationId) end
  end
  -- A message is a courtesy to caches: a user that may not publish still gets its pod.
  if #dead > 0 then redis.pcall('PUBLISH', channel, 'd ' .. destinationId) end
end

local function decide(destinationId, claimOnMiss, reassignOrphans, candidates)
  local live, dead = readPods(destinationId)
  if #live > 0 then return 'bound', live, dead, {} end
  if #dead == 0 and not claimOnMiss then return 'empty', live, dead, {} end
  if #dead > 0 and not reassignOrphans then return 'orphaned', live, dead, {} end
  local pod, figures, podAt = choose(candidates)
  if not pod then return 'refused', live, dead, figures end
  bind(destinationId, pod, dead)
  figures[podAt] = pod.pendingText
  live = { pod.memberId, pod.address, pod.load, pod.pendingText, '', pod.ttl }
  return #dead > 0 and 'reassigned' or 'claimed', live, dead, figures
end

local reply = {}
local at = 3
while at <= #ARGV do
  local destinationId = ARGV[at]
  local claimOnMiss, reassignOrphans = ARGV[at + 1] == '1', ARGV[at + 2] == '1'
  local candidates = {}
  local candidateCount = tonumber(ARGV[at + 3])
  for i = 1, candidateCount do candidates[i] = ARGV[at + 3 + i] end
  at = at + 4 + candidateCount
  local ok, status, live, dead, figures = pcall(decide, destinationId, claimOnMiss, reassignOrphans, candidates)
  if ok then
    reply[#reply + 1] = status
    reply[#reply + 1] = #live / 6
    for i = 1, #live do reply[#reply + 1] = live[i] end
    reply[#reply + 1] = #dead
    for i = 1, #dead do reply[#reply + 1] = dead[i] end
    reply[#reply + 1] = #figures / 3
    for i = 1, #figures do reply[#reply + 1] = figures[i] end
  else
    local message = type(status) == 'table' and status.err or tostring(status)
    if string.sub(message, 1, 8) == 'READONLY' then return redis.error_reply(message) end
    reply[#reply + 1] = 'error'
    reply[#reply + 1] = message
  end
end

return reply
