-- declare-features: records with which features a prefix is used, where nobody did yet.
--
-- KEYS[1]  hash of features
-- ARGV     name and value in turn
--
-- Reply: the recorded value of each feature, in the order of ARGV

local featuresKey = KEYS[1]
local reply = {}

for i = 1, #ARGV, 2 do
  redis.call('HSETNX', featuresKey, ARGV[i], ARGV[i + 1])
  reply[#reply + 1] = redis.call('HGET', featuresKey, ARGV[i])
end

return reply
