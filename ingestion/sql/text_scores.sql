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
)
