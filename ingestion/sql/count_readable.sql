-- The number of documents with passages that the caller may read and that are not past their last day.
\set user_id 1
\set today '2027-01-31'

SELECT count(*)
FROM ingestion_document AS document
WHERE
    document.version > 0
    AND (document.valid_until IS NULL OR document.valid_until >= :'today'::date)
    AND document.passage_count > 0
    AND document.access_list_id IN (SELECT mine.access_list_id FROM ingestion_readable_entries(:'user_id') AS mine);
