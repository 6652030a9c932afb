hits AS MATERIALIZED (
    SELECT
        hit.number,
        hit.passage_id,
-- include: rank
        AS rank
    FROM (
        SELECT words.number, words.query, words.operands, found.passage_id, found.search
        FROM found
        JOIN words ON words.language = found.language AND found.search @@ words.query
        WHERE ((found.document_id, found.language) IN (SELECT readable.id, readable.language FROM readable)) IS TRUE
    ) AS hit
),

-- How many readable passages hold each word; of those not sought alone, as a sample had it.
frequencies AS MATERIALIZED (
    SELECT
        word.number,
        coalesce(
            (
                SELECT estimated.share * %(visible)s
                FROM unnest(%(estimated)s::int[], %(shares)s::double precision[]) AS estimated (number, share)
                WHERE estimated.number = word.number
            ),
            counted.passages,
            0
        ) AS passages
    FROM (SELECT DISTINCT words.number FROM words) AS word
    LEFT JOIN (
        SELECT hits.number, count(*)::double precision AS passages FROM hits GROUP BY hits.number
    ) AS counted ON counted.number = word.number
)
