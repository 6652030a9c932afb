-- Return how many messages a person has sent today, and lock the row until the transaction ends, so that no other
-- transaction changes the count. If another process has already begun a new day, a process whose clock is
-- slightly behind also counts on that day; otherwise it would restart the old day with a count of zero.
INSERT INTO chat_usage AS known (owner_id, day, messages)
VALUES (:'owner', :'today', 0)
ON CONFLICT (owner_id) DO UPDATE
SET
    day = CASE WHEN excluded.day = known.day - 1 THEN known.day ELSE excluded.day END,
    messages = CASE WHEN excluded.day IN (known.day, known.day - 1) THEN known.messages ELSE 0 END
RETURNING messages
