-- How many documents with passages the caller may read.
\set user_id 1

SELECT count(*)
FROM ingestion_document AS document
WHERE
    document.version > 0
    AND document.passage_count > 0
    AND document.access_list_id IN (SELECT mine.access_list_id FROM ingestion_readable_entries(:'user_id') AS mine);
