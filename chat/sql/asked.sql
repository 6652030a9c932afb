-- What one more question of somebody is measured by: their answers at work, in how many seconds each question of the
-- last minute will be a minute old, and how many messages a day they may send.
SELECT
    count(*) FILTER (WHERE run.finished_at IS NULL AND lease.until >= statement_timestamp()) AS running,
    coalesce(
        array_agg(
            extract(EPOCH FROM run.created_at + interval '1 minute' - statement_timestamp())::float
            ORDER BY run.created_at
        ) FILTER (WHERE run.created_at > statement_timestamp() - interval '1 minute'),
        '{}'
    ) AS waits,
    (
        -- As message_limit.sql tells it alone.
        SELECT CASE WHEN bool_or(allowed.messages IS NULL) THEN NULL ELSE max(allowed.messages) END AS messages
        FROM chat_messageallowance AS allowed
        WHERE
            allowed.user_id = :'owner'
            OR allowed.group_id IN (SELECT membership.group_id FROM accounts_user_groups AS membership WHERE membership.user_id = :'owner')
            OR (allowed.user_id IS NULL AND allowed.group_id IS NULL)
        GROUP BY allowed.user_id IS NULL, allowed.group_id IS NULL
        ORDER BY allowed.user_id IS NULL, allowed.group_id IS NULL
        LIMIT 1
    ) AS message_limit
FROM chat_run AS run
LEFT JOIN chat_lease AS lease ON lease.run_id = run.id
WHERE
    run.owner_id = :'owner'
    AND (run.finished_at IS NULL OR run.created_at > statement_timestamp() - interval '1 minute')
