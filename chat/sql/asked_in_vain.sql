-- Questions since a moment that may have been asked in vain, newest first: refused, answered without being sure or
-- without a source, rated bad, answered again at once, or followed by another question of the same person at once.
-- `closed`: the conversation so far cites something that this reader may not open, so that the question may tell of it.
\set since '2026-01-01'
\set user_id 1
\set nothing 'Nothing'
\set unsure 'Unsure'
\set most 10

WITH readable AS MATERIALIZED (
    SELECT mine.access_list_id FROM ingestion_readable_entries(:'user_id') AS mine
),

asked AS (
    SELECT
        message.conversation_id,
        message.position,
        message.content,
        message.created_at,
        conversation.owner_id,
        coalesce(
            lead(message.position) OVER (PARTITION BY message.conversation_id ORDER BY message.position), 2147483647
        ) AS next_position,
        lead(message.content) OVER mine AS next_content,
        lead(message.created_at) OVER mine <= message.created_at + interval '2 minutes' AS goes_on
    FROM history_message AS message
    JOIN history_conversation AS conversation ON conversation.id = message.conversation_id
    WHERE
        message.role = 'user'
        AND NOT message.imported
        AND message.created_at >= :'since'::timestamptz
        AND conversation.listed
        AND conversation.deleted_at IS NULL
    WINDOW mine AS (PARTITION BY conversation.owner_id ORDER BY message.created_at, message.position)
),

judged AS (
    SELECT asked.*, answers.*
    FROM asked
    CROSS JOIN LATERAL (
        SELECT
            coalesce(bool_or(answer.content = :'nothing'), false) AS refused,
            coalesce(
                bool_or(
                    answer.content <> :'nothing'
                    AND (
                        starts_with(answer.content, :'unsure')
                        OR (answer.state = 'complete' AND answer.content <> '' AND answer.citations = '[]'::jsonb)
                    )
                ),
                false
            ) AS unsure,
            coalesce(bool_or(feedback.rating = 'bad'), false) AS bad,
            coalesce(bool_or(feedback.shared), false) AS shared,
            count(DISTINCT answer.exchange)
            FILTER (WHERE answer.created_at <= asked.created_at + interval '2 minutes') > 1 AS again
        FROM history_message AS answer
        LEFT JOIN history_feedback AS feedback ON feedback.message_id = answer.id
        -- An answer that was given again stands after later questions, and says which one it follows.
        LEFT JOIN LATERAL (
            SELECT first.follows
            FROM history_message AS first
            WHERE first.exchange = answer.exchange
            ORDER BY first.position
            LIMIT 1
        ) AS beginning ON true
        WHERE
            answer.conversation_id = asked.conversation_id
            AND answer.role = 'assistant'
            AND CASE
                WHEN beginning.follows IS NULL
                    THEN answer.position > asked.position AND answer.position < asked.next_position
                ELSE beginning.follows = asked.position
            END
    ) AS answers
),

-- Most that were only followed by another question are not in vain: they do not take the place of those that are.
chosen AS (
    SELECT found.*
    FROM (
        SELECT
            judged.*,
            row_number() OVER (
                PARTITION BY judged.refused OR judged.unsure OR judged.bad OR judged.again
                ORDER BY judged.created_at DESC
            ) AS place
        FROM judged
        WHERE judged.refused OR judged.unsure OR judged.bad OR judged.again OR judged.goes_on
    ) AS found
    WHERE found.place <= :most
)

SELECT
    chosen.content,
    chosen.created_at,
    chosen.owner_id,
    chosen.next_content,
    chosen.goes_on,
    chosen.refused,
    chosen.unsure,
    chosen.bad,
    chosen.shared,
    chosen.again,
    EXISTS (
        SELECT
        FROM history_message AS said
        CROSS JOIN LATERAL jsonb_array_elements_text(said.citations) AS cited (label)
        WHERE
            said.conversation_id = chosen.conversation_id
            AND said.role = 'assistant'
            AND said.position < chosen.next_position
            AND said.citations <> '[]'::jsonb
            AND NOT EXISTS (
                SELECT
                FROM history_source AS source
                JOIN ingestion_document AS document ON document.id = source.document_id
                WHERE
                    source.message_id = said.id
                    AND source.label = cited.label
                    AND document.access_list_id IN (SELECT readable.access_list_id FROM readable)
            )
    ) AS closed
FROM chosen
ORDER BY chosen.created_at DESC
