-- Where much is readable, the index of words is asked. In a large corpus (a budget below 1) only for the rarest
-- words of the question, until the passages to look at are that share of all: a sample of the readable
-- documents says which these are, and how many passages hold the others.
sample AS MATERIALIZED (
    SELECT passage.search, chosen.language
    FROM (
        SELECT readable.id, readable.language
        FROM readable
        WHERE
            %(budget)s < 1
            AND abs(hashint8(readable.id)::bigint) %% (SELECT 1 + count(*) / %(sampled)s FROM readable) = 0
    ) AS chosen
    CROSS JOIN LATERAL (
        SELECT words.search
        FROM ingestion_passagewords AS words
        WHERE words.document_id = chosen.id
        LIMIT 20
    ) AS passage
    LIMIT %(sampled)s * 15
),

shares AS MATERIALIZED (
    SELECT words.number, sum(held.passages + 0.5) / ((SELECT count(*) FROM sample) + 1) AS share
    FROM words
    CROSS JOIN LATERAL (
        SELECT count(*) AS passages
        FROM sample
        WHERE sample.language = words.language AND sample.search @@ words.query
    ) AS held
    GROUP BY words.number
),

sought AS MATERIALIZED (
    SELECT ordered.number
    FROM (
        SELECT
            shares.number,
            row_number() OVER (ORDER BY shares.share, shares.number) AS place,
            sum(shares.share) OVER (ORDER BY shares.share, shares.number) AS together
        FROM shares
    ) AS ordered
    WHERE ordered.place = 1 OR ordered.together <= %(budget)s OR %(budget)s >= 1
),

-- One look-up for each word: OFFSET keeps the planner from turning them into one scan of all passages for
-- all words, and from joining once for each word.
hits AS MATERIALIZED (
    SELECT
        hit.number,
        hit.passage_id,
-- include: rank
        AS rank
    FROM (
        SELECT words.number, words.language, words.query, passage.passage_id, passage.document_id, passage.search
        FROM words
        CROSS JOIN LATERAL (
            SELECT passage.passage_id, passage.document_id, passage.search
            FROM ingestion_passagewords AS passage
            WHERE passage.search @@ words.query
            OFFSET 0
        ) AS passage
        WHERE words.number IN (SELECT sought.number FROM sought)
        OFFSET 0
    ) AS hit
    WHERE ((hit.document_id, hit.language) IN (SELECT readable.id, readable.language FROM readable)) IS TRUE
),

-- How many readable passages hold each word; of the words not sought, as the sample has it.
frequencies AS MATERIALIZED (
    SELECT
        shares.number,
        CASE
            WHEN shares.number IN (SELECT sought.number FROM sought)
                THEN (SELECT count(*) FROM hits WHERE hits.number = shares.number)::double precision
            ELSE least(1, shares.share) * size.passages
        END AS passages
    FROM shares
    CROSS JOIN size
)
