-- What both legs put forward, or did before, each scored by all words and by its nearest piece. Whatever a leg did, nothing
-- leaves here that is not of a readable document.
candidates AS MATERIALIZED (
    SELECT passage.passage_id, passage.search, readable.language
    FROM ingestion_passagewords AS passage
    JOIN readable ON readable.id = passage.document_id
    WHERE
        passage.passage_id = ANY(
            ARRAY(
                SELECT worded.passage_id FROM worded
                UNION
                SELECT nearest.passage_id FROM nearest
                UNION
                SELECT unnest(%(kept)s::bigint[])
            )
        )
),

by_words AS MATERIALIZED (
-- include: text_scores
),

by_vectors AS MATERIALIZED (
    SELECT vector.passage_id, max(-(vector.vector <#> %(vector)s::halfvec)) AS score
    FROM ingestion_vector AS vector
    WHERE
        %(with_vectors)s
        AND vector.space_id = %(space_id)s
        AND vector.passage_id = ANY(ARRAY(SELECT candidates.passage_id FROM candidates))
    GROUP BY vector.passage_id
)

SELECT
    candidates.passage_id,
    CASE
        WHEN candidates.language IN (SELECT known.cfgname::text FROM pg_ts_config AS known) THEN candidates.language
        ELSE 'simple'
    END AS language,
    by_words.score AS text_score,
    coalesce(by_words.coverage, 0) AS coverage,
    by_vectors.score AS vector_score,
    -- The words that no readable passage holds.
    ARRAY(SELECT frequencies.number FROM frequencies WHERE frequencies.passages = 0) AS unknown
FROM candidates
LEFT JOIN by_words ON by_words.passage_id = candidates.passage_id
LEFT JOIN by_vectors ON by_vectors.passage_id = candidates.passage_id
ORDER BY candidates.passage_id
