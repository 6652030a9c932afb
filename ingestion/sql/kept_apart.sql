-- The files that the caller attached to questions and that nobody else can read, including the files inside
-- these.
\set user_id 1
\set private '0'
\set attached '^Attachments(/\\d{4}-\\d\\d-\\d\\d)?$'
\set inside '^Attachments/\\d{4}-\\d\\d-\\d\\d/'

SELECT document.id
FROM ingestion_document AS document
JOIN ingestion_accesslist AS list ON list.id = document.access_list_id
WHERE
    document.owner_id = :'user_id'
    AND list.digest = :'private'
    AND (document.folder ~ :'attached' OR (document.folder ~ :'inside' AND document.part_of_id IS NOT NULL));
