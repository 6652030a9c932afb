-- One more message of somebody's, whose row is locked (take_turn).
UPDATE chat_usage SET messages = messages + 1 WHERE owner_id = :'owner'
RETURNING messages
