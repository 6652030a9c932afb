-- The number of documents with passages that a search of everything covers: all that the caller may read and
-- that are not past their last day, except files that the caller attached to questions and that nobody else can
-- read.
\set user_id 1
\set today '2027-01-31'
\set private '0'
\set attached '^Attachments(/\\d{4}-\\d\\d-\\d\\d)?$'
\set inside '^Attachments/\\d{4}-\\d\\d-\\d\\d/'

SELECT count(*)
FROM ingestion_document AS document
JOIN ingestion_accesslist AS list ON list.id = document.access_list_id
WHERE
    document.version > 0
    AND (document.valid_until IS NULL OR document.valid_until >= :'today'::date)
    AND document.passage_count > 0
    AND document.access_list_id IN (SELECT mine.access_list_id FROM ingestion_readable_entries(:'user_id') AS mine)
    AND NOT (
        document.owner_id IS NOT DISTINCT FROM :'user_id'
        AND list.digest = :'private'
        AND (document.folder ~ :'attached' OR (document.folder ~ :'inside' AND document.part_of_id IS NOT NULL))
    );
