-- Of the documents that either leg met, those that the caller may read and asks for.
readable AS MATERIALIZED (
    SELECT document.id, document.language
    FROM ingestion_document AS document
    WHERE
        document.id = ANY(
            ARRAY(SELECT found.document_id FROM found UNION SELECT nearest.document_id FROM nearest)
        )
        AND
-- include: allowed
)
