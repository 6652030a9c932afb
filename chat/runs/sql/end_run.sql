-- End a run: write its last events, and return its owner, its answer and the messages that must still be closed.
-- Returns no row if the run has already ended. The lease is deleted first, because only the holder of its lock may
-- write or end the run. The events with a generated title are only written if the title was set earlier in
-- this transaction, which does not happen if the owner has chosen a title.
WITH titled AS (
    SELECT EXISTS (
        SELECT FROM history_conversation AS conversation
        WHERE conversation.id = :'conversation' AND conversation.title = :'title' AND NOT conversation.title_by_owner
    ) AS is_set
),

released AS (
    DELETE FROM chat_lease WHERE run_id = :'run' RETURNING run_id
),

ended AS (
    UPDATE chat_run AS run
    SET
        finished_at = statement_timestamp(),
        last_event = CASE WHEN (SELECT titled.is_set FROM titled) THEN :'titled_last' ELSE :'last' END,
        first_word_ms = :'first_word_ms'
    FROM released
    WHERE run.id = released.run_id AND run.finished_at IS NULL
    RETURNING run.id, run.owner_id, run.answer_id
),

written AS (
    INSERT INTO chat_journalentry (run_id, first, last, events)
    SELECT
        ended.id,
        :'first',
        CASE WHEN titled.is_set THEN :'titled_last' ELSE :'last' END,
        CASE WHEN titled.is_set THEN :'titled_events'::jsonb ELSE :'events'::jsonb END
    FROM ended
    CROSS JOIN titled
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
    ) AS webhooks,
    titled.is_set AS titled
FROM ended
CROSS JOIN titled
