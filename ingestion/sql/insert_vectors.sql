-- The vectors that lie prepared, to the passages whose pieces they are.
INSERT INTO ingestion_vector (space_id, document_id, passage_id, digest, vector)
SELECT prepared.space_id, prepared.document_id, piece.passage_id, prepared.digest, prepared.vector
FROM unnest(%(passage_ids)s::bigint[], %(digests)s::bigint[]) WITH ORDINALITY AS piece (passage_id, digest, position)
JOIN ingestion_preparedvector AS prepared
    ON prepared.digest = piece.digest
    AND prepared.document_id = %(document_id)s
    AND prepared.space_id = %(space_id)s
ORDER BY piece.position
