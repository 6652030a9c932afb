-- The numbers that decide whether a person may ask another question: how many of their answers are running,
-- in how many seconds each of their questions of the last minute will be a minute old, and their daily
-- message limit.
SELECT
    count(*) FILTER (WHERE run.finished_at IS NULL AND lease.until >= statement_timestamp()) AS running,
    coalesce(
        array_agg(
            extract(EPOCH FROM run.created_at + interval '1 minute' - statement_timestamp())::float
            ORDER BY run.created_at
        ) FILTER (WHERE run.created_at > statement_timestamp() - interval '1 minute'),
        '{}'
    ) AS waits,
    (SELECT allowed.messages FROM chat_message_limit(:'owner') AS allowed) AS message_limit
FROM chat_run AS run
LEFT JOIN chat_lease AS lease ON lease.run_id = run.id
WHERE
    run.owner_id = :'owner'
    AND (run.finished_at IS NULL OR run.created_at > statement_timestamp() - interval '1 minute')
