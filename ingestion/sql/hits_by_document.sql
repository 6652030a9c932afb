-- Where little is readable, every readable passage is looked at.
hits AS MATERIALIZED (
    SELECT
        hit.number,
        hit.passage_id,
-- include: rank
        AS rank
    FROM (
        SELECT words.number, words.query, words.operands, passage.passage_id, passage.search
        FROM ingestion_passagewords AS passage
        JOIN readable ON readable.id = passage.document_id
        JOIN words ON words.language = readable.language AND passage.search @@ words.query
        WHERE passage.document_id = ANY(ARRAY(SELECT readable.id FROM readable))
    ) AS hit
),

-- How many readable passages hold each word.
frequencies AS MATERIALIZED (
    SELECT word.number, count(hits.number)::double precision AS passages
    FROM (SELECT DISTINCT words.number FROM words) AS word
    LEFT JOIN hits ON hits.number = word.number
    GROUP BY word.number
)
