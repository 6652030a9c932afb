-- Of the documents that either leg met, now or before, those that the caller may read and asks for.
readable AS MATERIALIZED (
    SELECT document.id, document.language
    FROM ingestion_document AS document
    WHERE
        document.id = ANY(
            ARRAY(
                SELECT found.document_id FROM found
                UNION
                SELECT nearest.document_id FROM nearest
                UNION
                SELECT kept.document_id
                FROM ingestion_passagewords AS kept
                WHERE kept.passage_id = ANY(%(kept)s::bigint[])
            )
        )
        AND
-- include: allowed
)
