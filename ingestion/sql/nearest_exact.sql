-- The readable passages nearest to the question, every vector compared. The nearest piece counts for its
-- passage. Vectors have length 1, so the inner product is the cosine; `+ 0` keeps the index of vectors away.
nearest AS MATERIALIZED (
    SELECT piece.passage_id
    FROM (
        SELECT vector.passage_id, (vector.vector <#> %(vector)s::halfvec) + 0 AS distance
        FROM ingestion_vector AS vector
        WHERE
            %(with_nearest)s
            AND vector.space_id = %(space_id)s
            AND vector.document_id = ANY(ARRAY(SELECT readable.id FROM readable))
        ORDER BY distance
        LIMIT %(pieces)s
    ) AS piece
    GROUP BY piece.passage_id
    ORDER BY min(piece.distance), piece.passage_id
    LIMIT %(depth)s
)
