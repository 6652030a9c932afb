-- One look-up in the index for each word: OFFSET keeps the planner from turning them into one scan of all
-- passages for all words, and from joining once for each word.
hits AS MATERIALIZED (
    SELECT
        hit.number,
        hit.passage_id,
        readable.configuration,
-- include: rank
        AS rank
    FROM (
        SELECT words.number, words.configuration, words.query, passage.passage_id, passage.document_id, passage.search
        FROM words
        CROSS JOIN LATERAL (
            SELECT passage.passage_id, passage.document_id, passage.search
            FROM ingestion_passagewords AS passage
            WHERE passage.search @@ words.query
            OFFSET 0
        ) AS passage
        OFFSET 0
    ) AS hit
    JOIN readable ON readable.id = hit.document_id AND readable.configuration = hit.configuration
)
