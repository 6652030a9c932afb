-- Every readable passage that holds a word of the question, and every readable vector, scored without an
-- approximate index. Gives the union of both legs' best, with what is known of each candidate.
WITH readable AS MATERIALIZED (
    SELECT
        document.id,
        document.language,
        document.passage_count,
        coalesce(known.oid, 'simple'::regconfig)::regconfig AS configuration
    FROM ingestion_document AS document
    LEFT JOIN pg_ts_config AS known
        ON known.cfgname = document.language AND known.cfgnamespace = 'pg_catalog'::regnamespace
    WHERE
-- include: allowed
),

size AS MATERIALIZED (
    SELECT coalesce(sum(readable.passage_count), 0)::double precision AS passages FROM readable
),

-- include: words
,

-- include: text_hits
,

-- include: text_scores
,

-- Vectors have length 1, so the inner product is the cosine. The best piece counts for its passage.
vector_leg AS MATERIALIZED (
    SELECT vector.passage_id, readable.configuration, max(-(vector.vector <#> %(vector)s::halfvec)) AS score
    FROM ingestion_vector AS vector
    JOIN readable ON readable.id = vector.document_id
    WHERE %(with_vectors)s AND vector.space_id = %(space_id)s
    GROUP BY vector.passage_id, readable.configuration
),

candidates AS (
    (SELECT text_leg.passage_id FROM text_leg ORDER BY text_leg.score DESC, text_leg.passage_id LIMIT %(depth)s)
    UNION
    (
        SELECT vector_leg.passage_id
        FROM vector_leg
        ORDER BY vector_leg.score DESC, vector_leg.passage_id
        LIMIT %(depth)s
    )
)

SELECT
    candidates.passage_id,
    coalesce(text_leg.configuration, vector_leg.configuration)::text AS language,
    text_leg.score AS text_score,
    coalesce(text_leg.coverage, 0) AS coverage,
    vector_leg.score AS vector_score
FROM candidates
LEFT JOIN text_leg ON text_leg.passage_id = candidates.passage_id
LEFT JOIN vector_leg ON vector_leg.passage_id = candidates.passage_id
ORDER BY candidates.passage_id
