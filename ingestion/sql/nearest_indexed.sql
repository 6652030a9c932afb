-- The readable passages nearest to the question, by the index of vectors, which goes on until it has met enough
-- that the caller may read: each candidate's document is looked up, and the lists of access lie in a hash.
nearest AS MATERIALIZED (
    SELECT piece.passage_id, piece.document_id
    FROM (
        SELECT
            vector.passage_id,
            vector.document_id,
            vector.vector::halfvec(%(dimensions)s) <=> %(vector)s::halfvec(%(dimensions)s) AS distance
        FROM ingestion_vector AS vector
        WHERE
            %(with_nearest)s
            AND vector.space_id = %(space_id)s
            AND (
                SELECT true
                FROM ingestion_document AS document
                WHERE
                    document.id = vector.document_id
                    AND
-- include: allowed
            )
        ORDER BY vector.vector::halfvec(%(dimensions)s) <=> %(vector)s::halfvec(%(dimensions)s)
        LIMIT %(pieces)s
    ) AS piece
    GROUP BY piece.passage_id, piece.document_id
    ORDER BY min(piece.distance), piece.passage_id
    LIMIT %(depth)s
)
