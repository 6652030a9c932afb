    -- The score of a candidate by all words, and the share of the question that it covers.
    SELECT
        hit.passage_id,
        sum(
            weights.idf
            *
-- include: rank
        ) AS score,
        least(1, sum(weights.share * weights.worth) / max(questions.share)) AS coverage
    FROM (
        SELECT candidates.passage_id, candidates.language, candidates.search, words.number, words.query, words.operands
        FROM candidates
        JOIN words ON words.language = candidates.language AND candidates.search @@ words.query
    ) AS hit
    JOIN weights ON weights.number = hit.number
    JOIN questions ON questions.language = hit.language
    GROUP BY hit.passage_id
