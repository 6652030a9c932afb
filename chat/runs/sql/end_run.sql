-- The end of an answer: its last events, and whose messages are still to be closed. No row where it has ended already.
WITH ended AS (
    UPDATE chat_run
    SET finished_at = statement_timestamp(), last_event = %(last)s
    WHERE id = %(run)s AND finished_at IS NULL
    RETURNING id, owner_id, answer_id
),

written AS (
    INSERT INTO chat_journalentry (run_id, first, last, events)
    SELECT ended.id, %(first)s, %(last)s, %(events)s::jsonb
    FROM ended
    ON CONFLICT (run_id, first) DO UPDATE SET last = excluded.last, events = excluded.events
)

SELECT
    ended.owner_id,
    ended.answer_id,
    ARRAY(
        SELECT message.id
        FROM history_message AS message
        WHERE message.exchange = ended.id AND message.state IN ('queued', 'streaming')
    ) AS unfinished
FROM ended
