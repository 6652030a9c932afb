-- Where much is readable, the index of words is asked, once for each language: for passages that hold all words
-- of one of the groups sought.
sought AS MATERIALIZED (
    SELECT grouped.language, string_agg(grouped.query, ' | ')::tsquery AS query
    FROM (
        SELECT words.language, '(' || string_agg(words.query::text, ' & ') || ')' AS query
        FROM unnest(%(groups)s::int[], %(members)s::int[]) AS member (place, number)
        JOIN words ON words.number = member.number
        GROUP BY words.language, member.place
    ) AS grouped
    GROUP BY grouped.language
),

hits AS MATERIALIZED (
    SELECT
        hit.number,
        hit.passage_id,
-- include: rank
        AS rank
    FROM (
        SELECT words.number, words.query, passage.passage_id, passage.search
        FROM (
            SELECT sought.language, found.passage_id, found.search
            FROM sought
            CROSS JOIN LATERAL (
                SELECT passage.passage_id, passage.document_id, passage.search
                FROM ingestion_passagewords AS passage
                WHERE passage.search @@ sought.query
                OFFSET 0
            ) AS found
            WHERE ((found.document_id, sought.language) IN (SELECT readable.id, readable.language FROM readable)) IS TRUE
            OFFSET 0
        ) AS passage
        JOIN words ON words.language = passage.language AND passage.search @@ words.query
    ) AS hit
),

-- How many readable passages hold each word; of those not sought alone, as a sample had it.
frequencies AS MATERIALIZED (
    SELECT
        word.number,
        coalesce(
            (
                SELECT estimated.share * size.passages
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
    CROSS JOIN size
)
