-- What each word is worth, by how few of the readable passages hold it. Among few passages that says little:
-- for the share of the question that a passage covers, a hundred more without the word are imagined.
weights AS MATERIALIZED (
    SELECT
        frequencies.number,
        worth.worth,
        ln(1 + (%(visible)s - frequencies.passages + 0.5) / (frequencies.passages + 0.5)) * worth.worth AS idf,
        ln(1 + (%(visible)s + 100 - frequencies.passages + 0.5) / (frequencies.passages + 0.5)) AS share
    FROM frequencies
    JOIN unnest(%(worths)s::double precision[]) WITH ORDINALITY AS worth (worth, number)
        ON worth.number = frequencies.number
),

-- What a language calls a stop word is no part of the question for its passages, nor are words added to those
-- asked.
questions AS MATERIALIZED (
    SELECT words.language, sum(weights.share) AS share
    FROM words
    JOIN weights ON weights.number = words.number
    WHERE words.number <= %(asked)s
    GROUP BY words.language
),

-- The passages that the words put forward.
worded AS MATERIALIZED (
    SELECT hits.passage_id
    FROM hits
    JOIN weights ON weights.number = hits.number
    GROUP BY hits.passage_id
    ORDER BY sum(weights.idf * hits.rank) DESC, hits.passage_id
    LIMIT %(depth)s
)
