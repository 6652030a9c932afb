-- The newest run of the same request by the same person within a number of seconds, if it failed before its
-- first word and only such failures came after it. Returns no row if the run has an idempotency key, or if its
-- question is no longer on the chosen branch. This is SQL because it runs for every question, and Django's ORM
-- took ten times as long to build its queries.
\set owner 1
\set digest 0123abcd
\set seconds 300

SELECT run.id
FROM (
    SELECT each.id, each.conversation_id, each.question_id, each.idempotency_key, each.finished_at
    FROM chat_run AS each
    JOIN history_conversation AS conversation ON conversation.id = each.conversation_id
    WHERE
        each.owner_id = :'owner'
        AND each.body_digest = :'digest'
        AND each.created_at > statement_timestamp() - make_interval(secs => :'seconds')
        AND conversation.deleted_at IS NULL
        AND conversation.listed
    ORDER BY each.created_at DESC
    LIMIT 1
) AS run
JOIN history_message AS question ON question.id = run.question_id
WHERE
    run.finished_at IS NOT NULL
    AND run.idempotency_key IS NULL
    AND question.chosen
    AND NOT EXISTS (
        SELECT FROM history_message AS later
        WHERE
            later.conversation_id = run.conversation_id
            AND later.position > question.position
            AND NOT (later.role = 'assistant' AND later.state = 'failed' AND later.content = '')
    );
