-- Every readable passage that holds a word of the question, and every readable vector, scored without an
-- approximate index. Gives the union of both legs' best, with what is known of each candidate.
WITH readable AS MATERIALIZED (
    SELECT document.id, document.language, coalesce(known.oid, 'simple'::regconfig)::regconfig AS configuration
    FROM ingestion_document AS document
    LEFT JOIN pg_ts_config AS known
        ON known.cfgname = document.language AND known.cfgnamespace = 'pg_catalog'::regnamespace
    WHERE
        document.version > 0
        AND document.access_list_id IN (
-- include: readable
        )
        AND (%(include_category)s = '' OR document.category = %(include_category)s)
        AND (%(exclude_category)s = '' OR document.category <> %(exclude_category)s)
        -- What the caller asks for beside their rights only takes away from what these allow.
        AND (
            NOT (%(to_person)s OR %(to_groups)s)
            OR (%(to_person)s AND document.owner_id = %(user_id)s)
            OR document.access_list_id IN (
-- include: granted
            )
        )
),

size AS MATERIALIZED (
    SELECT count(*) AS passages
    FROM ingestion_passage AS passage
    JOIN readable ON readable.id = passage.document_id
),

-- Each word of the question, stemmed by each language that occurs. A stop word has no query (no nodes).
parsed AS MATERIALIZED (
    SELECT word.number, language.configuration, plainto_tsquery(language.configuration, word.text) AS query
    FROM unnest(%(words)s::text[]) WITH ORDINALITY AS word (text, number)
    CROSS JOIN (SELECT DISTINCT readable.configuration FROM readable) AS language
),

-- What some language here calls a stop word is none of the words sought where the language is unknown.
words AS MATERIALIZED (
    SELECT parsed.number, parsed.configuration, parsed.query
    FROM parsed
    WHERE
        numnode(parsed.query) > 0
        AND NOT (
            parsed.configuration = 'simple'::regconfig
            AND EXISTS (
                SELECT 1 FROM parsed AS other WHERE other.number = parsed.number AND numnode(other.query) = 0
            )
        )
),

-- One look-up in the index for each word: OFFSET keeps the planner from turning them into one scan of all
-- passages for all words, and from joining once for each word. Ranks weigh D (content), C, B (heading), A (title).
hits AS MATERIALIZED (
    SELECT
        hit.number,
        hit.id AS passage_id,
        readable.configuration,
        ts_rank('{0.8, 0.8, 1, 1}', hit.search, hit.query, 1) AS rank
    FROM (
        SELECT words.number, words.configuration, words.query, passage.id, passage.document_id, passage.search
        FROM words
        CROSS JOIN LATERAL (
            SELECT passage.id, passage.document_id, passage.search
            FROM ingestion_passage AS passage
            WHERE passage.search @@ words.query
            OFFSET 0
        ) AS passage
        OFFSET 0
    ) AS hit
    JOIN readable ON readable.id = hit.document_id AND readable.configuration = hit.configuration
),

-- What each word is worth, by how few of the readable passages hold it. Among few passages that says little:
-- for the share of the question that a passage covers, a hundred more without the word are imagined.
weights AS MATERIALIZED (
    SELECT
        counted.number,
        ln(1 + (size.passages - counted.passages + 0.5) / (counted.passages + 0.5)) AS idf,
        ln(1 + (size.passages + 100 - counted.passages + 0.5) / (counted.passages + 0.5)) AS share
    FROM (
        SELECT word.number, count(hits.number)::double precision AS passages
        FROM (SELECT DISTINCT words.number FROM words) AS word
        LEFT JOIN hits ON hits.number = word.number
        GROUP BY word.number
    ) AS counted
    CROSS JOIN size
),

-- What a language calls a stop word is no part of the question for its passages.
questions AS MATERIALIZED (
    SELECT words.configuration, sum(weights.share) AS share
    FROM words
    JOIN weights USING (number)
    GROUP BY words.configuration
),

text_leg AS MATERIALIZED (
    SELECT
        hits.passage_id,
        hits.configuration,
        sum(weights.idf * hits.rank) AS score,
        sum(weights.share) / max(questions.share) AS coverage
    FROM hits
    JOIN weights USING (number)
    JOIN questions USING (configuration)
    GROUP BY hits.passage_id, hits.configuration
),

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
