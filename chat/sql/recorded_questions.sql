-- The wordings of questions since a certain time that may match a pattern, newest first. Each row has how
-- often the wording was asked, the accounts of the people who asked it (without guests and programs), and the
-- conversations. `query` has the words that a wording must contain; null matches all.
\set since '2026-01-01'
\set query ''
\set most 10

SELECT
    asked.content,
    count(*) AS times,
    coalesce(
        array_agg(DISTINCT account.id) FILTER (WHERE account.guest_until IS NULL AND account.service_for = ''),
        '{}'
    ) AS people,
    array_agg(DISTINCT conversation.id) AS conversations,
    max(asked.created_at) AS last
FROM history_message AS asked
JOIN history_conversation AS conversation ON conversation.id = asked.conversation_id
JOIN accounts_user AS account ON account.id = conversation.owner_id
WHERE
    (:'query'::text IS NULL OR asked.search @@ :'query'::text::tsquery)
    AND asked.role = 'user'
    AND NOT asked.imported
    AND asked.created_at >= :'since'::timestamptz
    AND conversation.listed
    AND conversation.deleted_at IS NULL
GROUP BY asked.content
ORDER BY last DESC
LIMIT :most
