-- Copy the vectors of a document to its prepared vectors, for texts that have no prepared vector yet.
\set document_id 1
\set space_id 1

INSERT INTO ingestion_preparedvector (space_id, document_id, digest, vector)
SELECT DISTINCT ON (vector.digest) vector.space_id, vector.document_id, vector.digest, vector.vector
FROM ingestion_vector AS vector
WHERE
    vector.document_id = :'document_id'
    AND vector.space_id = :'space_id'
    AND vector.digest IS NOT NULL
    AND NOT EXISTS (
        SELECT 1
        FROM ingestion_preparedvector AS prepared
        WHERE
            prepared.document_id = vector.document_id
            AND prepared.space_id = vector.space_id
            AND prepared.digest = vector.digest
    )
ORDER BY vector.digest;
