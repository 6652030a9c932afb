-- Which words of the question occur together in how many passages of a sample of the readable documents.
WITH readable AS MATERIALIZED (
    SELECT document.id, document.language
    FROM ingestion_document AS document
    WHERE
        document.id = ANY(ARRAY(
-- include: probes
        ))
        AND
-- include: allowed
),

languages AS MATERIALIZED (
    SELECT DISTINCT readable.language FROM readable
),

-- include: words
,

sample AS MATERIALIZED (
    SELECT passage.search, readable.language
    FROM readable
    CROSS JOIN LATERAL (
        SELECT words.search
        FROM ingestion_passagewords AS words
        WHERE words.document_id = readable.id
        LIMIT 1 + %(sampled)s / (SELECT count(*) FROM readable)
    ) AS passage
    LIMIT %(sampled)s
)

SELECT held.numbers, count(*) AS passages
FROM (
    SELECT (
        SELECT array_agg(words.number ORDER BY words.number)
        FROM words
        WHERE words.language = sample.language AND sample.search @@ words.query
    ) AS numbers
    FROM sample
) AS held
GROUP BY held.numbers
