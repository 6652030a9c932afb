-- Count one more message of a person, whose row is locked (take_turn.sql).
UPDATE chat_usage SET messages = messages + 1 WHERE owner_id = :'owner'
RETURNING messages
