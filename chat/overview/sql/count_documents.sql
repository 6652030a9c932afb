-- Count how many runs that ended in a period found each document, and how many cited it. Add the counts to the
-- figures of the days on which the runs began.
\set since '2026-01-01'
\set until '2026-01-02'
\set zone 'UTC'

INSERT INTO chat_documentuse AS used (day, document_id, found, cited)
SELECT
    (run.created_at AT TIME ZONE :'zone')::date,
    source.document_id,
    count(DISTINCT run.id),
    count(DISTINCT run.id) FILTER (WHERE jsonb_exists(answer.citations, source.label))
FROM chat_run AS run
JOIN history_message AS answer ON answer.exchange = run.id
JOIN history_source AS source ON source.message_id = answer.id
WHERE run.finished_at > :'since'::timestamptz AND run.finished_at <= :'until'::timestamptz
GROUP BY 1, 2
ORDER BY 1, 2
ON CONFLICT (day, document_id) DO UPDATE
SET found = used.found + excluded.found, cited = used.cited + excluded.cited
