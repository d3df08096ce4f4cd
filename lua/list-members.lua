-- list-members: reads the records of one page of members, 100 at most, so that the server is not held for longer than a millisecond.
-- Writes nothing.
--
-- KEYS[1]  set of memberIds
-- KEYS[2]  base of the member hashes
-- ARGV     memberIds of the page; none: the page is the whole set when it has at most 100
--
-- Reply, one flat array:
--   'page', liveCount, then for each live member: memberId, address, load, pending, '1' when draining else ''; then the ids without a record
--   'ids', then all memberIds   without ARGV, when there are 101 to 1000: to be asked for in pages
--   'many'                      without ARGV, when there are more: to be read with SMEMBERS first, since a script would hold the server

local membersKey = KEYS[1]
local memberBase = KEYS[2]
local call = redis.call
local memberIds = ARGV

-- What was bound to a pod without an incarnation since its record was written last (see claim.lua), as text; '' for nothing.
local function plainPending(memberKey, load, field)
  local since, sum = string.match(field, '^(.*)/([^/]*)$')
  return since == call('PEXPIRETIME', memberKey) .. ':' .. (load or '') and sum or ''
end

if #memberIds == 0 then
  local count = call('SCARD', membersKey)
  if count > 1000 then return { 'many' } end
  memberIds = call('SMEMBERS', membersKey)
  if count > 100 then
    table.insert(memberIds, 1, 'ids')
    return memberIds
  end
end

local reply = { 'page', 0 }
local size = 2
local liveCount, dead = 0, {}
for i = 1, #memberIds do
  local memberId = memberIds[i]
  local memberKey = memberBase .. memberId
  local record = call('HMGET', memberKey, 'address', 'load', 'pending', 'draining', 'incarnation', 'plainPending')
  if record[1] and record[1] ~= '' then
    local draining, pending = record[4], record[3] or ''
    if not record[5] then pending = record[6] and plainPending(memberKey, record[2], record[6]) or '' end
    liveCount = liveCount + 1
    reply[size + 1] = memberId
    reply[size + 2] = record[1]
    reply[size + 3] = record[2] or ''
    reply[size + 4] = pending
    reply[size + 5] = draining and draining ~= '' and draining ~= '0' and draining ~= 'false' and '1' or ''
    size = size + 5
  else
    dead[#dead + 1] = memberId
  end
end
reply[2] = liveCount
for i = 1, #dead do reply[size + i] = dead[i] end

return reply
