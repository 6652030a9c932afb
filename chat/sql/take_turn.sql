-- What somebody has asked today; until the transaction ends nobody else counts for them. Whose clock is a little
-- behind at midnight counts on the day that others have begun: a day never comes back with nothing used.
INSERT INTO chat_usage AS known (owner_id, day, messages)
VALUES (:'owner', :'today', 0)
ON CONFLICT (owner_id) DO UPDATE
SET
    day = CASE WHEN excluded.day = known.day - 1 THEN known.day ELSE excluded.day END,
    messages = CASE WHEN excluded.day IN (known.day, known.day - 1) THEN known.messages ELSE 0 END
RETURNING messages
