-- How much the caller may search, of how much there is, and, of a large corpus, which words of the question occur
-- together in how many passages of a sample of it. How much is estimated from a sample of documents where that
-- holds enough of them, else counted.
WITH
-- include: lists
,

probed AS MATERIALIZED (
    SELECT document.id, document.language, document.passage_count
    FROM ingestion_document AS document
    WHERE
        document.id = ANY(ARRAY(
            -- Numbers of documents, spread evenly over all that were ever given.
            SELECT DISTINCT 1 + given.last_value * probe.number / %(probes)s
            FROM ingestion_document_id_seq AS given
            CROSS JOIN generate_series(0, %(probes)s - 1) AS probe (number)
        ))
        AND
-- include: allowed
),

size AS MATERIALIZED (
    SELECT
        CASE
            WHEN estimated.met >= %(min_probed)s THEN estimated.passages
            ELSE (
                SELECT coalesce(sum(document.passage_count), 0)::bigint
                FROM ingestion_document AS document
                WHERE
-- include: by_lists
                    AND
-- include: allowed
            )
        END AS visible,
        (
            SELECT greatest(known.reltuples, 0)::bigint
            FROM pg_class AS known
            WHERE known.oid = 'ingestion_passagewords'::regclass
        ) AS every
    FROM (
        SELECT
            count(*) AS met,
            (sum(probed.passage_count) * greatest(1, max(given.last_value)::numeric / %(probes)s))::bigint AS passages
        FROM probed
        CROSS JOIN ingestion_document_id_seq AS given
    ) AS estimated
),

languages AS MATERIALIZED (
    SELECT DISTINCT probed.language FROM probed
),

-- include: words
,

sample AS MATERIALIZED (
    SELECT passage.search, probed.language
    FROM probed
    CROSS JOIN LATERAL (
        SELECT words.search
        FROM ingestion_passagewords AS words
        WHERE words.document_id = probed.id
        LIMIT 1 + %(sampled)s / (SELECT count(*) FROM probed)
    ) AS passage
    WHERE %(asked)s > 0 AND (SELECT size.every > %(large)s AND size.visible > %(max_scan)s FROM size)
    LIMIT %(sampled)s
)

SELECT size.visible, size.every, held.numbers, held.passages
FROM size
LEFT JOIN (
    SELECT each.numbers, count(*) AS passages
    FROM (
        SELECT (
            SELECT array_agg(words.number)
            FROM words
            WHERE words.language = sample.language AND sample.search @@ words.query
        ) AS numbers
        FROM sample
    ) AS each
    GROUP BY each.numbers
) AS held ON true
