-- Which words of the question occur together how often, in a sample of the readable documents; and of how
-- many documents the sample is.
WITH readable AS MATERIALIZED (
    SELECT document.id, document.language
    FROM ingestion_document AS document
    WHERE
        abs(hashint8(document.id)::bigint) %% %(step)s = 0
        AND
-- include: allowed
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
        LIMIT %(of_each)s
    ) AS passage
    LIMIT %(most)s
)

SELECT held.numbers, count(*) AS passages, (SELECT count(*) FROM readable) AS documents
FROM (
    SELECT (
        SELECT array_agg(words.number ORDER BY words.number)
        FROM words
        WHERE words.language = sample.language AND sample.search @@ words.query
    ) AS numbers
    FROM sample
) AS held
GROUP BY held.numbers
