-- The end of an answer: its last events, and whose messages are still to be closed. No row where it has ended already.
-- The lease is deleted first: only the holder of its lock writes or ends the run.
WITH released AS (
    DELETE FROM chat_lease WHERE run_id = :'run' RETURNING run_id
),

ended AS (
    UPDATE chat_run AS run
    SET
        finished_at = statement_timestamp(),
        last_event = :'last',
        first_word_ms = :'first_word_ms'
    FROM released
    WHERE run.id = released.run_id AND run.finished_at IS NULL
    RETURNING run.id, run.owner_id, run.answer_id
),

written AS (
    INSERT INTO chat_journalentry (run_id, first, last, events)
    SELECT ended.id, :'first', :'last', :'events'::jsonb
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
    ) AS unfinished,
    EXISTS (
        SELECT FROM accounts_webhookendpoint AS endpoint
        WHERE endpoint.active AND endpoint.events && :'webhook_events'
    ) AS webhooks
FROM ended
