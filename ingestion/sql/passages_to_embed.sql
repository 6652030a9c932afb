-- The next passages, in the order of their ids, that have no vector in the space.
\set after 0
\set space_id 1
\set number 100

SELECT passage.id, passage.document_id, document.title, passage.heading, passage.content
FROM ingestion_passage AS passage
JOIN ingestion_document AS document ON document.id = passage.document_id
WHERE
    passage.id > :'after'
    AND NOT EXISTS (
        SELECT 1 FROM ingestion_vector AS vector WHERE vector.passage_id = passage.id AND vector.space_id = :'space_id'
    )
ORDER BY passage.id
LIMIT :'number';
