-- The words of each passage that the caller may read, in the form of the word index, and how often each
-- occurs.
\set user_id 1
\set today '2027-01-31'

SELECT
    document.id AS document_id,
    document.language,
    passage.anchor,
    tsvector_to_array(words.search) AS lexemes,
    ARRAY(SELECT cardinality(each.positions) FROM unnest(words.search) AS each) AS times
FROM ingestion_document AS document
JOIN ingestion_passagewords AS words ON words.document_id = document.id
JOIN ingestion_passage AS passage ON passage.id = words.passage_id
WHERE
    document.version > 0
    AND (document.valid_until IS NULL OR document.valid_until >= :'today'::date)
    AND document.access_list_id IN (SELECT mine.access_list_id FROM ingestion_readable_entries(:'user_id') AS mine)
ORDER BY passage.id;
