-- The documents, as far as this reader may open them, that the answers to some questions cite. A question is a conversation
-- with its position, and that of the next question.
\set user_id 1
\set conversations '{}'
\set positions '{}'
\set next_positions '{}'

SELECT DISTINCT
    question.conversation_id,
    question.position,
    document.id AS document_id,
    coalesce(nullif(document.title, ''), document.name) AS title
FROM unnest(:'conversations'::uuid[], :'positions'::integer[], :'next_positions'::integer[])
    AS question (conversation_id, position, next_position)
JOIN history_message AS answer
    ON
        answer.conversation_id = question.conversation_id
        AND answer.role = 'assistant'
        AND answer.position > question.position
        AND answer.position < question.next_position
JOIN history_source AS source ON source.message_id = answer.id
JOIN ingestion_document AS document ON document.id = source.document_id
WHERE
    answer.citations @> to_jsonb(source.label)
    AND document.access_list_id IN (
        SELECT mine.access_list_id FROM ingestion_readable_entries(:'user_id') AS mine
    )
