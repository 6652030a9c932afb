-- Questions since a moment that may have been asked in vain, newest first: refused, answered without being sure or
-- without a source (unless the asker rated that answer good), rated bad, answered again at once, or followed by another
-- question of the same person at once.
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
        lead(message.created_at) OVER mine <= message.created_at + interval '2 minutes' AS repeated_soon
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

-- An answer that was given again stands after later questions, and the first message of its run says which it follows.
given_again AS (
    SELECT first.exchange, first.follows
    FROM history_message AS first
    WHERE
        first.follows IS NOT NULL
        AND NOT EXISTS (
            SELECT
            FROM history_message AS earlier
            WHERE earlier.exchange = first.exchange AND earlier.position < first.position
        )
),

answered AS (
    SELECT
        asked.conversation_id,
        asked.position,
        bool_or(answer.content = :'nothing') AS refused,
        bool_or(
            answer.content <> :'nothing'
            AND feedback.rating IS DISTINCT FROM 'good'
            AND (
                starts_with(answer.content, :'unsure')
                OR (answer.state = 'complete' AND answer.content <> '' AND answer.citations = '[]'::jsonb)
            )
        ) AS unsure,
        bool_or(feedback.rating = 'bad') AS bad,
        bool_or(feedback.shared) AS shared,
        -- Several runs: not counted as distinct ones, which would sort all answers with their texts.
        min(answer.exchange::text) FILTER (WHERE answer.created_at <= asked.created_at + interval '2 minutes')
        < max(answer.exchange::text) FILTER (WHERE answer.created_at <= asked.created_at + interval '2 minutes')
            AS again
    FROM asked
    JOIN history_message AS answer ON answer.conversation_id = asked.conversation_id AND answer.role = 'assistant'
    LEFT JOIN given_again ON given_again.exchange = answer.exchange
    LEFT JOIN history_feedback AS feedback ON feedback.message_id = answer.id
    WHERE
        CASE
            WHEN given_again.follows IS NULL
                THEN answer.position > asked.position AND answer.position < asked.next_position
            ELSE given_again.follows = asked.position
        END
    GROUP BY asked.conversation_id, asked.position
),

judged AS (
    SELECT
        asked.*,
        coalesce(answered.refused, false) AS refused,
        coalesce(answered.unsure, false) AS unsure,
        coalesce(answered.bad, false) AS bad,
        coalesce(answered.shared, false) AS shared,
        coalesce(answered.again, false) AS again
    FROM asked
    LEFT JOIN answered ON answered.conversation_id = asked.conversation_id AND answered.position = asked.position
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
        WHERE judged.refused OR judged.unsure OR judged.bad OR judged.again OR judged.repeated_soon
    ) AS found
    WHERE found.place <= :most
)

SELECT
    chosen.conversation_id,
    chosen.position,
    chosen.next_position,
    chosen.content,
    chosen.created_at,
    chosen.owner_id,
    account.guest_until IS NULL AND account.service_for = '' AS is_person,
    chosen.next_content,
    chosen.repeated_soon,
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
JOIN accounts_user AS account ON account.id = chosen.owner_id
ORDER BY chosen.created_at DESC
