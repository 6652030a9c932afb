-- How many people can get each of these answers, and how many of them do not edit verified answers. This only
-- considers who may read the cited documents, and the groups of the answers. Answers that everyone who signs
-- in can get are left out.
\set ids '{}'
\set editors '{}'

WITH closed AS (
    SELECT DISTINCT citation.answer_id, document.access_list_id
    FROM chat_verifiedcitation AS citation
    JOIN ingestion_document AS document ON document.id = citation.document_id
    WHERE
        citation.answer_id = any(:'ids'::bigint[])
        AND NOT EXISTS (
            SELECT FROM ingestion_accessentry AS entry
            WHERE
                entry.access_list_id = document.access_list_id AND entry.user_id IS NULL AND entry.group_id IS NULL
        )
),

conditions AS (
    SELECT closed.answer_id, closed.access_list_id FROM closed
    UNION ALL
    SELECT answer.id, NULL
    FROM chat_verifiedanswer AS answer
    WHERE
        answer.id = any(:'ids'::bigint[])
        AND (
            answer.restricted
            OR EXISTS (SELECT FROM chat_verifiedanswer_groups AS chosen WHERE chosen.verifiedanswer_id = answer.id)
        )
),

counted AS (
    SELECT conditions.answer_id, count(*) AS number FROM conditions GROUP BY conditions.answer_id
),

met AS (
    SELECT closed.answer_id, closed.access_list_id, entry.user_id
    FROM closed
    JOIN ingestion_accessentry AS entry ON entry.access_list_id = closed.access_list_id
    WHERE entry.user_id IS NOT NULL
    UNION
    SELECT closed.answer_id, closed.access_list_id, membership.user_id
    FROM closed
    JOIN ingestion_accessentry AS entry ON entry.access_list_id = closed.access_list_id
    JOIN accounts_user_groups AS membership ON membership.group_id = entry.group_id
    UNION
    SELECT chosen.verifiedanswer_id, NULL, membership.user_id
    FROM chat_verifiedanswer_groups AS chosen
    JOIN accounts_user_groups AS membership ON membership.group_id = chosen.group_id
    WHERE chosen.verifiedanswer_id = any(:'ids'::bigint[])
),

getting AS (
    SELECT met.answer_id, met.user_id
    FROM met
    JOIN counted ON counted.answer_id = met.answer_id
    JOIN accounts_user AS person ON person.id = met.user_id
    WHERE person.is_active AND person.guest_until IS NULL
    GROUP BY met.answer_id, met.user_id, counted.number
    HAVING count(*) = counted.number
)

SELECT
    counted.answer_id,
    count(getting.user_id) AS people,
    count(getting.user_id) FILTER (WHERE getting.user_id <> all(:'editors'::bigint[])) AS others
FROM counted
LEFT JOIN getting ON getting.answer_id = counted.answer_id
GROUP BY counted.answer_id
