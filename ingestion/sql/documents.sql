-- The documents that the caller may read and asks for, and the languages of them.
readable AS MATERIALIZED (
    SELECT document.id, document.language
    FROM ingestion_document AS document
    WHERE
-- include: by_lists
        AND
-- include: allowed
),

languages AS MATERIALIZED (
    SELECT DISTINCT readable.language FROM readable
)
