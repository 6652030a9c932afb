-- People whose questions must be judged again: those who got or rated an answer since a certain time, and those
-- with a question that is stored as rated bad but has no bad rating any more. With `all`, also everybody who may
-- have asked since that time.
\set since '2026-01-01'
\set all false

SELECT run.owner_id
FROM chat_run AS run
WHERE run.finished_at >= :'since'::timestamptz
UNION
SELECT conversation.owner_id
FROM history_feedback AS feedback
JOIN history_message AS answer ON answer.id = feedback.message_id
JOIN history_conversation AS conversation ON conversation.id = answer.conversation_id
WHERE feedback.updated_at >= :'since'::timestamptz
UNION
SELECT asked.owner_id
FROM chat_unansweredquestion AS asked
WHERE
    'bad' = any(asked.reasons)
    AND NOT EXISTS (
        SELECT FROM history_feedback AS feedback
        WHERE feedback.message_id = any(asked.answers) AND feedback.rating = 'bad'
    )
UNION
SELECT conversation.owner_id
FROM history_conversation AS conversation
WHERE :'all' AND conversation.updated_at >= :'since'::timestamptz
