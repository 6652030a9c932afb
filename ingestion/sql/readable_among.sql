-- Select those of the given documents that the caller may read now.
\set user_id 1
\set documents '{1,2}'

SELECT document.id
FROM ingestion_document AS document
WHERE
    document.id = ANY(:'documents'::bigint[])
    AND document.access_list_id IN (SELECT mine.access_list_id FROM ingestion_readable_entries(:'user_id') AS mine);
