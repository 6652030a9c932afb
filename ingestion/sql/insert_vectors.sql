-- Copy prepared vectors to the passages; the digests of the pieces tell which vector belongs to which passage.
\set document_id 1
\set space_id 1
\set passage_ids '{1}'
\set digests '{1}'

INSERT INTO ingestion_vector (space_id, document_id, passage_id, digest, vector)
SELECT prepared.space_id, prepared.document_id, piece.passage_id, prepared.digest, prepared.vector
FROM unnest(:'passage_ids'::bigint[], :'digests'::bigint[]) WITH ORDINALITY AS piece (passage_id, digest, position)
JOIN ingestion_preparedvector AS prepared
    ON prepared.digest = piece.digest
    AND prepared.document_id = :'document_id'
    AND prepared.space_id = :'space_id'
ORDER BY piece.position;
