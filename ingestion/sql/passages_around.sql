-- The given passages, with up to `reach` passages before and after each one under the same heading, if the
-- caller may read the document.
\set user_id 1
\set passage_ids '{1,2}'
\set reach 20

WITH passage AS MATERIALIZED (
    SELECT * FROM ingestion_passage AS every WHERE every.id = ANY(:'passage_ids'::bigint[])
)

SELECT
    passage.id AS passage_id,
    near.position - passage.position AS distance,
    near.anchor,
    near.content
FROM passage
JOIN ingestion_document AS document ON document.id = passage.document_id
JOIN ingestion_passage AS near
    ON
        near.document_id = passage.document_id
        AND near.position BETWEEN passage.position - :'reach'::integer AND passage.position + :'reach'::integer
WHERE
    near.heading = passage.heading
    AND (
        document.access_list_id IN (
            SELECT mine.access_list_id FROM ingestion_readable_entries(:'user_id') AS mine
        )
    ) IS TRUE;
