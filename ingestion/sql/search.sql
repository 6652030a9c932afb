-- The passages that the words or the vector of a question put forward, or a run before, among those that the caller
-- may read: each scored by all words and by its nearest piece. Run it by hand with psql -f, after prepare.sql.
--
-- `plan` is a question of speed alone; what is not part of it costs nothing, since its value is known to the planner:
--   scan     few passages may be read: all are looked at, by their words and by their vectors
--   mixed    some thousand: the words by their index, and every readable vector
--   indexed  many: words and vectors by their indexes; nothing grows with the number of documents
-- The documents that may be read and are asked for are found in six places, by one function that the planner replaces
-- with its body. IS TRUE keeps the lists in a hash; as a join they would be read anew for each document.
\set user_id 1
\set today '2027-01-31'
\set include_category ''
\set exclude_category ''
\set scoped false
\set documents '{}'
\set excluding false
\set excluded '{}'
\set to_person false
\set to_groups false
\set plan scan
-- The words asked, then those added to them; what else each is sought as; the stems of languages that PostgreSQL
-- cannot stem; what each is worth, how often the question
-- says it, and for which of the words asked it stands.
\set words '{annual,leave}'
\set otherwise '{"",""}'
\set stems '{"polish": ["annual", "leav"]}'
\set worths '{1,1}'
\set times '{1,1}'
\set stands '{0,0}'
\set asked 2
-- Which words lead to passages: in each group (place) those that a passage must hold together, and whether the group
-- is a common one, with at most so many passages; how frequent words are that lead nowhere alone.
\set groups '{0,1}'
\set members '{1,2}'
\set common '{false,false}'
\set max_common 300
-- Whether only passages of readable documents are looked at, which the mixed plan knows; else the share of readable
-- ones among those with such words.
\set by_documents false
\set readable_share 1
\set estimated '{}'
\set shares '{}'
-- Passages that may be read, and all there are; how many different words one has; those that each leg puts forward, and those of a run before.
\set visible 300
\set every 300
\set mean_length 0
\set depth 100
\set kept '{}'
-- The vector of the question, and the space it lies in.
\set with_vectors true
\set with_nearest true
\set space_id 1
\set dimensions 2
\set vector '[0.6,0.8]'
\set pieces 400

WITH RECURSIVE lists AS MATERIALIZED (
    SELECT mine.access_list_id
    FROM ingestion_readable_entries(:'user_id') AS mine
    WHERE
        NOT (:'to_person' OR :'to_groups')
        OR (:'to_person' AND mine.user_id IS NOT NULL)  -- an owner is named, too
        OR (:'to_groups' AND mine.group_id IS NOT NULL)
),

library AS MATERIALIZED (
    SELECT document.id, document.language
    FROM ingestion_document AS document
    WHERE
        :'plan' <> 'indexed'
        -- Not the condition (that follows) but a way to its rows: an array leads through the index of access lists.
        AND document.access_list_id = ANY(ARRAY(SELECT lists.access_list_id FROM lists))
        AND ingestion_is_searched(
            document, (document.access_list_id IN (SELECT lists.access_list_id FROM lists)) IS TRUE, :'today',
            :'include_category', :'exclude_category', :'scoped', :'documents', :'excluding', :'excluded'
        )
),

-- The languages of the documents, each found by the index from the one before it.
following AS (
    SELECT (
        SELECT document.language
        FROM ingestion_document AS document
        WHERE
            ingestion_is_searched(
                document, (document.access_list_id IN (SELECT lists.access_list_id FROM lists)) IS TRUE, :'today',
                :'include_category', :'exclude_category', :'scoped', :'documents', :'excluding', :'excluded'
            )
        ORDER BY document.language
        LIMIT 1
    ) AS language
    WHERE :'plan' = 'indexed'
    UNION ALL
    SELECT (
        SELECT document.language
        FROM ingestion_document AS document
        WHERE
            document.language > following.language
            AND ingestion_is_searched(
                document, (document.access_list_id IN (SELECT lists.access_list_id FROM lists)) IS TRUE, :'today',
                :'include_category', :'exclude_category', :'scoped', :'documents', :'excluding', :'excluded'
            )
        ORDER BY document.language
        LIMIT 1
    )
    FROM following
    WHERE following.language IS NOT NULL
),

words AS MATERIALIZED (
    SELECT word.number, word.language, word.query, word.operands
    FROM ingestion_question_words(
        :'words',
        :'otherwise',
        :'stems'::jsonb,
        ARRAY(SELECT library.language FROM library UNION SELECT following.language FROM following)
    ) AS word
),

-- By the index of words, once for each language: the passages that hold all words of one of the groups sought.
-- OFFSET keeps the planner from joining the other way round. What is readable of them is decided below.
sought AS MATERIALIZED (
    SELECT grouped.language, grouped.common, string_agg('(' || grouped.query || ')', ' | ')::tsquery AS query
    FROM (
        SELECT words.language, member.common, string_agg('(' || words.query::text || ')', ' & ') AS query
        FROM unnest(:'groups'::int[], :'members'::int[], :'common'::boolean[]) AS member (place, number, common)
        JOIN words ON words.number = member.number
        WHERE :'plan' <> 'scan'
        GROUP BY words.language, member.common, member.place
    ) AS grouped
    GROUP BY grouped.language, grouped.common
),

rare AS MATERIALIZED (
    SELECT sought.language, passage.passage_id, passage.document_id, passage.search
    FROM sought
    CROSS JOIN LATERAL (
        SELECT passage.passage_id, passage.document_id, passage.search
        FROM ingestion_passagewords AS passage
        WHERE
            NOT sought.common
            AND passage.search @@ sought.query
            AND (NOT :'by_documents' OR passage.document_id = ANY(ARRAY(SELECT library.id FROM library)))
        OFFSET 0
    ) AS passage
),

-- Where these are hardly any, some of those with commoner words: the first that the caller may read.
commoner AS MATERIALIZED (
    SELECT sought.language, passage.passage_id, passage.document_id, passage.search
    FROM sought
    CROSS JOIN LATERAL (
        SELECT passage.passage_id, passage.document_id, passage.search
        FROM ingestion_passagewords AS passage
        WHERE
            sought.common
            AND (SELECT count(*) FROM rare) * :'readable_share' < :'depth'
            AND passage.search @@ sought.query
            AND (NOT :'by_documents' OR passage.document_id = ANY(ARRAY(SELECT library.id FROM library)))
            AND (passage.passage_id IN (SELECT rare.passage_id FROM rare)) IS NOT TRUE
            AND (
                SELECT true
                FROM ingestion_document AS document
                WHERE
                    document.id = passage.document_id
                    AND ingestion_is_searched(
                        document, (document.access_list_id IN (SELECT lists.access_list_id FROM lists)) IS TRUE, :'today',
                        :'include_category', :'exclude_category', :'scoped', :'documents', :'excluding', :'excluded'
                    )
            )
        LIMIT :'max_common'
    ) AS passage
),

found AS NOT MATERIALIZED (
    SELECT rare.language, rare.passage_id, rare.document_id, rare.search FROM rare
    UNION ALL
    SELECT commoner.language, commoner.passage_id, commoner.document_id, commoner.search FROM commoner
),

-- The readable passages nearest to the question; the nearest piece counts for its passage.
nearest AS MATERIALIZED (
    SELECT piece.passage_id, piece.document_id
    FROM (
        -- Every vector compared. They have length 1, so the inner product is the cosine; `+ 0` keeps the index away.
        (
            SELECT
                vector.passage_id,
                vector.document_id,
                (vector.vector <#> :'vector'::halfvec) + 0 AS distance
            FROM ingestion_vector AS vector
            WHERE
                :'with_nearest'
                AND :'plan' <> 'indexed'
                AND vector.space_id = :'space_id'
                AND vector.document_id = ANY(ARRAY(SELECT library.id FROM library))
            ORDER BY distance
            LIMIT :'pieces'
        )
        UNION ALL
        -- By the index, which goes on until it has met enough that the caller may read.
        (
            SELECT
                vector.passage_id,
                vector.document_id,
                vector.vector::halfvec(:dimensions) <=> :'vector'::halfvec(:dimensions) AS distance
            FROM ingestion_vector AS vector
            WHERE
                :'with_nearest'
                AND :'plan' = 'indexed'
                AND vector.space_id = :'space_id'
                AND (
                    SELECT true
                    FROM ingestion_document AS document
                    WHERE
                        document.id = vector.document_id
                        AND ingestion_is_searched(
                            document, (document.access_list_id IN (SELECT lists.access_list_id FROM lists)) IS TRUE, :'today',
                            :'include_category', :'exclude_category', :'scoped', :'documents', :'excluding', :'excluded'
                        )
                )
            ORDER BY vector.vector::halfvec(:dimensions) <=> :'vector'::halfvec(:dimensions)
            LIMIT :'pieces'
        )
    ) AS piece
    GROUP BY piece.passage_id, piece.document_id
    ORDER BY min(piece.distance), piece.passage_id
    LIMIT :'depth'
),

-- Of the documents that a leg met by an index, now or before, those that the caller may read and asks for.
met AS MATERIALIZED (
    SELECT document.id, document.language
    FROM ingestion_document AS document
    WHERE
        :'plan' = 'indexed'
        AND document.id = ANY(
            ARRAY(
                SELECT found.document_id FROM found
                UNION
                SELECT nearest.document_id FROM nearest
                UNION
                SELECT kept.document_id
                FROM ingestion_passagewords AS kept
                WHERE kept.passage_id = ANY(:'kept'::bigint[])
            )
        )
        AND ingestion_is_searched(
            document, (document.access_list_id IN (SELECT lists.access_list_id FROM lists)) IS TRUE, :'today',
            :'include_category', :'exclude_category', :'scoped', :'documents', :'excluding', :'excluded'
        )
),

readable AS NOT MATERIALIZED (
    SELECT library.id, library.language FROM library
    UNION ALL
    SELECT met.id, met.language FROM met
),

-- Of one word in one passage: how often it occurs (from ts_rank, which sums 1/n² over the occurrences and divides by
-- π²/6), whether in its title (A) or heading (B), and how many different words the passage has. What is sought in
-- several ways at once would count by the mean of them, and counts by all.
hits AS MATERIALIZED (
    SELECT
        hit.number,
        hit.passage_id,
        1 / greatest(1.645 * (1 - hit.operands * ts_rank('{1, 1, 1, 1}', hit.search, hit.query)), 0.05) - 0.5 AS times,
        ts_rank('{0, 0, 1, 1}', hit.search, hit.query) > 0 AS titled,
        length(hit.search) AS length
    FROM (
        SELECT words.number, words.query, words.operands, passage.passage_id, passage.search
        FROM ingestion_passagewords AS passage
        JOIN library ON library.id = passage.document_id
        JOIN words ON words.language = library.language AND passage.search @@ words.query
        WHERE :'plan' = 'scan' AND passage.document_id = ANY(ARRAY(SELECT library.id FROM library))
        UNION ALL
        SELECT words.number, words.query, words.operands, found.passage_id, found.search
        FROM found
        JOIN words ON words.language = found.language AND found.search @@ words.query
        WHERE
            :'plan' <> 'scan'
            AND ((found.document_id, found.language) IN (SELECT readable.id, readable.language FROM readable)) IS TRUE
    ) AS hit
),

-- How many readable passages hold each word; of those not sought alone, as a sample had it.
frequencies AS MATERIALIZED (
    SELECT
        word.number,
        coalesce(
            (
                SELECT estimated.share * :'visible'
                FROM unnest(:'estimated'::int[], :'shares'::double precision[]) AS estimated (number, share)
                WHERE estimated.number = word.number
            ),
            counted.passages,
            0
        ) AS passages
    FROM (SELECT DISTINCT words.number FROM words) AS word
    LEFT JOIN (
        SELECT hits.number, count(*)::double precision AS passages FROM hits GROUP BY hits.number
    ) AS counted ON counted.number = word.number
),

-- What each word is worth, by how few of the readable passages hold it. Among few passages that says little:
-- for the share of the question that a passage covers, a hundred more without the word are imagined. What stands for
-- a word is not rarer than that word.
weights AS MATERIALIZED (
    SELECT
        counted.number,
        counted.worth,
        ln(1 + (:'visible' - counted.passages + 0.5) / (counted.passages + 0.5)) * counted.worth * counted.times AS idf,
        ln(1 + (:'visible' + 100 - counted.passages + 0.5) / (counted.passages + 0.5)) AS share
    FROM (
        SELECT
            frequencies.number,
            worth.worth,
            worth.times,
            greatest(frequencies.passages, replaced.passages) AS passages
        FROM frequencies
        JOIN
            unnest(:'worths'::double precision[], :'times'::double precision[], :'stands'::int[])
            WITH ORDINALITY AS worth (worth, times, stands, number)
            ON worth.number = frequencies.number
        LEFT JOIN frequencies AS replaced ON replaced.number = worth.stands
    ) AS counted
),

-- What a language calls a stop word is no part of the question for its passages, nor are words added to those
-- asked.
questions AS MATERIALIZED (
    SELECT words.language, sum(weights.share) AS share
    FROM words
    JOIN weights ON weights.number = words.number
    WHERE words.number <= :'asked'
    GROUP BY words.language
),

-- How many different words a readable passage has; where the survey met none, one that holds any of these.
mean AS MATERIALIZED (
    SELECT coalesce(nullif(:'mean_length'::double precision, 0), avg(hits.length)) AS length FROM hits
),

-- The passages that the words put forward: BM25 with k1 = 0.9 and b = 0.75, where a word counts as often as the
-- question says it, and half as much again in a title or a heading.
worded AS MATERIALIZED (
    SELECT hits.passage_id
    FROM hits
    JOIN weights ON weights.number = hits.number
    CROSS JOIN mean
    GROUP BY hits.passage_id
    ORDER BY
        sum(
            weights.idf
            * (1.9 * hits.times / (hits.times + 0.225 + 0.675 * hits.length / mean.length) + 0.5 * hits.titled::integer)
        ) DESC,
        hits.passage_id
    LIMIT :'depth'
),

-- Whatever a leg did, nothing leaves here that is not of a readable document.
candidates AS MATERIALIZED (
    SELECT passage.passage_id, passage.search, readable.language
    FROM ingestion_passagewords AS passage
    JOIN readable ON readable.id = passage.document_id
    WHERE
        passage.passage_id = ANY(
            ARRAY(
                SELECT worded.passage_id FROM worded
                UNION
                SELECT nearest.passage_id FROM nearest
                UNION
                SELECT unnest(:'kept'::bigint[])
            )
        )
),

-- The same score of each candidate by all words, and the share of the question that it covers.
by_words AS MATERIALIZED (
    SELECT
        hit.passage_id,
        sum(
            weights.idf
            * (1.9 * hit.times / (hit.times + 0.225 + 0.675 * hit.length / coalesce(mean.length, 1)) + 0.5 * hit.titled::integer)
        ) AS score,
        least(1, sum(weights.share * weights.worth) / max(questions.share)) AS coverage
    FROM (
        SELECT
            candidates.passage_id,
            candidates.language,
            words.number,
            1 / greatest(1.645 * (1 - words.operands * ts_rank('{1, 1, 1, 1}', candidates.search, words.query)), 0.05)
            - 0.5 AS times,
            ts_rank('{0, 0, 1, 1}', candidates.search, words.query) > 0 AS titled,
            length(candidates.search) AS length
        FROM candidates
        JOIN words ON words.language = candidates.language AND candidates.search @@ words.query
    ) AS hit
    JOIN weights ON weights.number = hit.number
    JOIN questions ON questions.language = hit.language
    CROSS JOIN mean
    GROUP BY hit.passage_id
),

by_vectors AS MATERIALIZED (
    SELECT
        vector.passage_id,
        max(-(vector.vector <#> :'vector'::halfvec)) AS score,
        avg(-(vector.vector <#> :'vector'::halfvec)) AS mean
    FROM ingestion_vector AS vector
    WHERE
        :'with_vectors'
        AND vector.space_id = :'space_id'
        AND vector.passage_id = ANY(ARRAY(SELECT candidates.passage_id FROM candidates))
    GROUP BY vector.passage_id
)

SELECT
    -- The words that no readable passage holds.
    ARRAY(SELECT frequencies.number FROM frequencies WHERE frequencies.passages = 0) AS unknown,
    -- One value, with each candidate as a list in the order of fusion.Candidate: for hundreds of rows the driver takes
    -- several times as long.
    coalesce(
        (
            SELECT
                json_agg(
                    json_build_array(
                        candidates.passage_id,
                        CASE
                            WHEN candidates.language IN (SELECT known.cfgname::text FROM pg_ts_config AS known)
                                THEN candidates.language
                            ELSE 'simple'
                        END,
                        by_words.score,
                        coalesce(by_words.coverage, 0),
                        by_vectors.score,
                        by_vectors.mean
                    )
                    ORDER BY candidates.passage_id
                )
            FROM candidates
            LEFT JOIN by_words ON by_words.passage_id = candidates.passage_id
            LEFT JOIN by_vectors ON by_vectors.passage_id = candidates.passage_id
        )::text,
        '[]'
    ) AS candidates;
