-- Subtract one from a person's count of messages, unless another day has begun since the message was counted.
UPDATE chat_usage SET messages = messages - 1
WHERE owner_id = :'owner' AND day = :'today' AND messages > 0
