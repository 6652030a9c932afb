-- One more answer to write, and one more message of its owner's. All times are the database's: the machines' clocks
-- may differ.
WITH counted AS (
    UPDATE chat_usage SET messages = messages + 1 WHERE owner_id = %(owner)s
)

INSERT INTO chat_run (
    id, owner_id, conversation_id, question_id, answer_id, options, idempotency_key, body_digest, lease_until,
    stop_requested, created_at, last_event
)
VALUES (
    %(id)s, %(owner)s, %(conversation)s, %(question)s, %(answer)s, %(options)s::jsonb, %(key)s, %(digest)s,
    statement_timestamp() + make_interval(secs => %(lease)s), false, statement_timestamp(), 0
)
