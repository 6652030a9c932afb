-- The documents with this name that the reader may read, newest first, except those that have never been processed
-- successfully.
\set user_id 1
\set name guide.md
\set folder ''
\set most 20

SELECT document.id
FROM ingestion_document AS document
WHERE
    document.name = :'name'
    AND (:'folder'::text IS NULL OR document.folder = :'folder')
    AND document.version > 0
    AND document.access_list_id IN (SELECT mine.access_list_id FROM ingestion_readable_entries(:'user_id') AS mine)
ORDER BY document.id DESC
LIMIT :'most';
