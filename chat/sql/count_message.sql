-- Count one more message of a person; take_turn.sql has locked the person's row.
UPDATE chat_usage SET messages = messages + 1 WHERE owner_id = :'owner'
RETURNING messages
