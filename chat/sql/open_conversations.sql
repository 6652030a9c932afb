-- Select those of the given conversations whose answers only cite existing documents that the reader may
-- read. Each row has the account of the owner; null for guests and programs.
\set ids '{}'
\set user_id 1

WITH readable AS MATERIALIZED (
    SELECT mine.access_list_id FROM ingestion_readable_entries(:'user_id') AS mine
)

SELECT
    conversation.id,
    CASE WHEN account.guest_until IS NULL AND account.service_for = '' THEN account.id END AS person
FROM history_conversation AS conversation
JOIN accounts_user AS account ON account.id = conversation.owner_id
WHERE
    conversation.id = any(:'ids'::uuid[])
    AND NOT EXISTS (
        SELECT FROM history_message AS answer
        CROSS JOIN LATERAL jsonb_array_elements_text(answer.citations) AS cited (label)
        LEFT JOIN history_source AS source ON source.message_id = answer.id AND source.label = cited.label
        LEFT JOIN ingestion_document AS document ON document.id = source.document_id
        WHERE
            answer.conversation_id = conversation.id
            AND answer.role = 'assistant'
            AND (
                document.id IS NULL
                OR document.access_list_id NOT IN (SELECT readable.access_list_id FROM readable)
            )
    )
