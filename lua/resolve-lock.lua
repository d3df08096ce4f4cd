-- resolve-lock: finds the pod that holds a lock. Writes nothing.
--
-- KEYS[1]  hash of the lock
-- KEYS[2]  base of the member hashes
--
-- Reply:
--   'held', memberId, address
--   'absent'  no such lock, or its pod is dead or has restarted since; a lock without an incarnation holds while its pod lives

local lock = redis.call('HMGET', KEYS[1], 'podId', 'incarnation')
if not lock[1] then return { 'absent' } end

local record = redis.call('HMGET', KEYS[2] .. lock[1], 'address', 'incarnation')
if not record[1] or record[1] == '' then return { 'absent' } end
if lock[2] and lock[2] ~= record[2] then return { 'absent' } end

return { 'held', lock[1], record[1] }
