-- The documents that the caller may read and asks for.
readable AS MATERIALIZED (
    SELECT document.id, document.language, document.passage_count
    FROM ingestion_document AS document
    WHERE
-- include: allowed
),

size AS MATERIALIZED (
    SELECT coalesce(sum(readable.passage_count), 0)::double precision AS passages FROM readable
)
