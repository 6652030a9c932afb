-- For each pair of a message and a person, the number of the message's sources that the person may open now.
-- A single statement checks all running answers.
SELECT asked.message_id, count(*)
FROM unnest(:'messages'::uuid[], :'users'::bigint[]) AS asked (message_id, user_id)
JOIN history_source AS source ON source.message_id = asked.message_id
JOIN ingestion_document AS document ON document.id = source.document_id
WHERE EXISTS (
    SELECT FROM ingestion_readable_entries(asked.user_id) AS mine WHERE mine.access_list_id = document.access_list_id
)
GROUP BY asked.message_id
