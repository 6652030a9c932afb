-- How many messages a person has sent today. Locks the row until the transaction ends, so that no other transaction
-- counts for them. A process whose clock is a little behind at midnight counts on the new day that others have begun:
-- otherwise the old day would begin again with nothing used.
INSERT INTO chat_usage AS known (owner_id, day, messages)
VALUES (:'owner', :'today', 0)
ON CONFLICT (owner_id) DO UPDATE
SET
    day = CASE WHEN excluded.day = known.day - 1 THEN known.day ELSE excluded.day END,
    messages = CASE WHEN excluded.day IN (known.day, known.day - 1) THEN known.messages ELSE 0 END
RETURNING messages
