-- release-locks: removes those of the given locks that are the member's own: one that another pod took over meanwhile stays.
--
-- KEYS[1]  base of the locks
-- KEYS[2]  hash of the member; not read: with two keys a cluster that moves the slot refuses the call, in place of running it where
--          the locks are not
-- ARGV[1]  memberId
-- ARGV[2]  incarnation
-- ARGV[3]  and on: lockIds, 100 at most
--
-- Reply: how many were removed

local lockBase = KEYS[1]
local memberId = ARGV[1]
local incarnation = ARGV[2]
local released = 0

for i = 3, #ARGV do
  local lockKey = lockBase .. ARGV[i]
  local lock = redis.pcall('HMGET', lockKey, 'podId', 'incarnation') -- an error, for a key of another type, has no fields
  if lock[1] == memberId and (not lock[2] or lock[2] == incarnation) then
    released = released + redis.call('DEL', lockKey)
  end
end

return released
