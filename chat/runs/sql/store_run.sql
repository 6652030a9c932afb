-- Store a run with its lease, and count one more message of its owner. All times are the database's, because
-- the clocks of machines may differ.
WITH counted AS (
    UPDATE chat_usage SET messages = messages + 1 WHERE owner_id = :'owner'
),

stored AS (
    INSERT INTO chat_run (
        id, owner_id, conversation_id, question_id, answer_id, options, idempotency_key, body_digest, stop_requested,
        created_at, last_event
    )
    VALUES (
        :'id', :'owner', :'conversation', :'question', :'answer', :'options'::jsonb, :'key', :'digest', false,
        statement_timestamp(), 0
    )
    RETURNING id
)

INSERT INTO chat_lease (run_id, until)
SELECT stored.id, statement_timestamp() + make_interval(secs => :'lease')
FROM stored
