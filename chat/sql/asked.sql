-- What one more question of somebody is measured by: their answers at work, when they asked of late, and how many
-- messages a day they may send.
SELECT
    count(*) FILTER (WHERE run.finished_at IS NULL AND run.lease_until >= %(now)s) AS running,
    coalesce(
        array_agg(run.created_at ORDER BY run.created_at) FILTER (WHERE run.created_at > %(since)s), '{}'
    ) AS moments,
    (
-- include: message_limit
    ) AS message_limit
FROM chat_run AS run
WHERE run.owner_id = %(owner)s AND (run.finished_at IS NULL OR run.created_at > %(since)s)
