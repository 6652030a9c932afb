-- Questions of some people since a certain time that may not have been answered: nothing was found, the answer
-- was unsure or had no source (unless the person rated it good), it was rated bad, or within two minutes it was
-- regenerated or the person asked another question. The caller checks whether the two questions are alike.
-- `cited` has the documents that the conversation cites up to the next question, and 0 if one of them is gone;
-- `shown` has the documents that the answers to the question cite.
\set since '2026-01-01'
\set owners '{}'
\set nothing '{Nothing}'
\set unsure 'Unsure'

WITH asked AS (
    SELECT
        message.id,
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
    FROM history_conversation AS conversation
    JOIN history_message AS message ON message.conversation_id = conversation.id
    WHERE
        conversation.owner_id = any(:'owners'::bigint[])
        AND conversation.updated_at >= :'since'::timestamptz
        AND message.role = 'user'
        AND NOT message.imported
        AND message.created_at >= :'since'::timestamptz
        AND conversation.listed
        AND conversation.deleted_at IS NULL
    WINDOW mine AS (PARTITION BY conversation.owner_id ORDER BY message.created_at, message.position)
),

said AS (
    SELECT answer.*
    FROM history_message AS answer
    WHERE
        answer.conversation_id IN (SELECT asked.conversation_id FROM asked)
        AND answer.role = 'assistant'
),

-- A regenerated answer may come after later questions. `follows` of the first message of its run is then the
-- position of its own question.
given_again AS (
    SELECT DISTINCT ON (said.exchange)
        said.exchange,
        said.follows
    FROM said
    WHERE said.exchange IS NOT NULL
    ORDER BY said.exchange, said.position
),

-- Materialized: with outdated statistics, as after a large import, the planner expects a single question, and
-- would compute this again for each of thousands.
answered AS MATERIALIZED (
    SELECT
        asked.id,
        array_agg(answer.id) AS answers,
        bool_or(answer.content = any(:'nothing'::text[])) AS refused,
        bool_or(
            answer.content <> all(:'nothing'::text[])
            AND feedback.rating IS DISTINCT FROM 'good'
            AND (
                starts_with(answer.content, :'unsure')
                OR (answer.state = 'complete' AND answer.content <> '' AND answer.citations = '[]'::jsonb)
            )
        ) AS unsure,
        bool_or(feedback.rating = 'bad') AS bad,
        -- Whether there are several runs. This avoids count(DISTINCT …), which would sort all answers with their texts.
        min(answer.exchange::text) FILTER (WHERE answer.created_at <= asked.created_at + interval '2 minutes')
        < max(answer.exchange::text) FILTER (WHERE answer.created_at <= asked.created_at + interval '2 minutes')
            AS again
    FROM asked
    JOIN said AS answer ON answer.conversation_id = asked.conversation_id
    LEFT JOIN given_again ON given_again.exchange = answer.exchange
    LEFT JOIN history_feedback AS feedback ON feedback.message_id = answer.id
    WHERE
        CASE
            WHEN given_again.follows IS NULL
                THEN answer.position > asked.position AND answer.position < asked.next_position
            ELSE given_again.follows = asked.position
        END
    GROUP BY asked.id
),

judged AS (
    SELECT
        asked.*,
        coalesce(answered.answers, '{}') AS answers,
        coalesce(answered.refused, false) AS refused,
        coalesce(answered.unsure, false) AS unsure,
        coalesce(answered.bad, false) AS bad,
        coalesce(answered.again, false) AS again
    FROM asked
    LEFT JOIN answered ON answered.id = asked.id
)

SELECT
    judged.id,
    judged.conversation_id,
    judged.content,
    judged.created_at,
    judged.owner_id,
    judged.next_content,
    judged.repeated_soon,
    judged.refused,
    judged.unsure,
    judged.bad,
    judged.again,
    judged.answers,
    ARRAY(
        SELECT DISTINCT source.document_id
        FROM said
        JOIN history_source AS source ON source.message_id = said.id
        WHERE said.id = any(judged.answers) AND said.citations @> to_jsonb(source.label)
    ) AS shown,
    ARRAY(
        SELECT DISTINCT coalesce(source.document_id, 0)
        FROM said
        CROSS JOIN LATERAL jsonb_array_elements_text(said.citations) AS cited (label)
        LEFT JOIN history_source AS source ON source.message_id = said.id AND source.label = cited.label
        WHERE said.conversation_id = judged.conversation_id AND said.position < judged.next_position
    ) AS cited
FROM judged
WHERE judged.refused OR judged.unsure OR judged.bad OR judged.again OR judged.repeated_soon
ORDER BY judged.created_at DESC
