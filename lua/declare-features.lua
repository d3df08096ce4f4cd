-- declare-features: records with which features a prefix is used, where nobody did yet.
--
-- KEYS[1]  hash of features
-- ARGV     name and value in turn
--
-- Reply: the recorded value of each feature, in the order of ARGV

local featuresKey = KEYS[1]
local reply = {}

for i = 1, #ARGV, 2 do
  local recorded = redis.call('HGET', featuresKey, ARGV[i])
  -- Written only where there is none: a full or read-only server is no reason to refuse a reader.
  if not recorded then
    recorded = ARGV[i + 1]
    redis.call('HSET', featuresKey, ARGV[i], recorded)
  end
  reply[#reply + 1] = recorded
end

return reply
