-- What somebody has asked today; until the transaction ends nobody else counts for them.
INSERT INTO chat_usage AS known (owner_id, day, messages)
VALUES (%(owner)s, %(today)s, 0)
ON CONFLICT (owner_id) DO UPDATE
SET day = excluded.day, messages = CASE WHEN known.day = excluded.day THEN known.messages ELSE 0 END
RETURNING messages
