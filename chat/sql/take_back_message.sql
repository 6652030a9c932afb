-- Count one message of a person less, unless another day has begun since it was counted.
UPDATE chat_usage SET messages = messages - 1
WHERE owner_id = :'owner' AND day = :'today' AND messages > 0
