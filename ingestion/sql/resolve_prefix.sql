-- The documents that the caller may read and whose public ids are within a range, newest first.
\set user_id 1
\set lowest 00000000-0000-0000-0000-000000000000
\set highest ffffffff-ffff-ffff-ffff-ffffffffffff
\set most 20

SELECT document.id
FROM ingestion_document AS document
WHERE
    document.public_id BETWEEN :'lowest' AND :'highest'
    AND document.version > 0
    AND document.access_list_id IN (SELECT mine.access_list_id FROM ingestion_readable_entries(:'user_id') AS mine)
ORDER BY document.id DESC
LIMIT :'most';
