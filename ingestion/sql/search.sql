-- Find passages by the words and by the vector of a question, among those that the caller may read. Each passage that
-- is found, or that is kept from the first of two queries (`kept`), is scored by all words and by its nearest piece. To
-- run this by hand, use psql -f after prepare.sql.
--
-- `plan` only affects speed. The planner knows its value, so the parts of other plans cost nothing:
--   scan     for few readable passages: compares the words and vectors of all of them
--   mixed    for some thousand: finds words by their index, and compares every readable vector
--   indexed  for many: finds words and vectors by their indexes; the time does not grow with the number of documents
-- Several subqueries select the documents that are readable and in scope, by a function that the planner inlines.
-- IS TRUE keeps the access lists in a hash; a join would read them again for each document.

-- The caller, the date, and the scope: categories and documents to include or exclude, and whether to search only
-- documents that name the caller (`to_person`) or a group of the caller (`to_groups`) as a reader.
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
-- Arrays with an element for each word. Words are numbered from 1.
--   words      the words of the question, then words that were added to it, such as synonyms
--   otherwise  other forms in which the word is searched for
--   stems      stems of the words for languages that PostgreSQL cannot stem (an object)
--   worths     weight of the word
--   times      how often the question has the word
--   stands     number of the word that an added word replaces; 0 if it replaces none, and for the question's own words
-- `asked` is how many of the words are the question's own.
\set words '{annual,leave}'
\set otherwise '{"",""}'
\set stems '{"polish": ["annual", "leav"]}'
\set worths '{1,1}'
\set times '{1,1}'
\set stands '{0,0}'
\set asked 2
-- The groups of words by which the index is searched. A passage is found if it has all words of any group. The arrays
-- have an element for each word of each group:
--   groups   number of the group
--   members  number of the word
--   common   whether the group matches more passages than wanted; it is used if the other groups match too few
-- In each language, at most `max_common` passages are found by common groups.
\set groups '{0,1}'
\set members '{1,2}'
\set common '{false,false}'
\set max_common 300
--   by_documents       whether to look up words only in passages of readable documents; only in the mixed plan
--   readable_share     share of readable passages among those with the words of the question
--   estimated, shares  words that are in no group of their own, and the share of passages with each
\set by_documents false
\set readable_share 1
\set estimated '{}'
\set shares '{}'
--   visible, every  number of readable passages, and of all passages
--   mean_length     mean number of different words in a passage; 0 if unknown
--   depth           how many passages are found at most by words, and by the vector
--   kept            passages kept from the first query, if this is a second one with substitutes for unknown words
\set visible 300
\set every 300
\set mean_length 0
\set depth 100
\set kept '{}'
--   with_vectors, with_nearest  whether to score by vectors, and whether to find the nearest passages
--   space_id, dimensions        the space of the vectors
--   vector                      the vector of the question in this space
--   pieces                      how many of the nearest pieces are considered
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
        -- Includes the caller's own documents, because access lists name the owner.
        OR (:'to_person' AND mine.user_id IS NOT NULL)
        OR (:'to_groups' AND mine.group_id IS NOT NULL)
),

library AS MATERIALIZED (
    SELECT document.id, document.language
    FROM ingestion_document AS document
    WHERE
        :'plan' <> 'indexed'
        -- Redundant with the function below, but an array makes the planner use the index of access lists.
        AND document.access_list_id = ANY(ARRAY(SELECT lists.access_list_id FROM lists))
        AND ingestion_is_searched(
            document, (document.access_list_id IN (SELECT lists.access_list_id FROM lists)) IS TRUE, :'today',
            :'include_category', :'exclude_category', :'scoped', :'documents', :'excluding', :'excluded'
        )
),

-- In the indexed plan: the languages of the documents. Each step finds the next language by the index.
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

-- The queries for the index of words, for each language: passages with all words of any group.
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

-- The passages with the words of groups that are not common. Whether they are readable is checked later. OFFSET 0 keeps
-- the planner from joining in the other order.
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

-- If `rare` has too few passages: in each language, the first readable passages with the words of common groups, at
-- most `max_common`.
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

-- The readable passages nearest to the question. The distance of a passage is that of its nearest piece.
nearest AS MATERIALIZED (
    SELECT piece.passage_id, piece.document_id
    FROM (
        -- In the plans scan and mixed: compares every readable vector. Vectors have length 1, so the inner product is the
        -- cosine; `+ 0` prevents use of the index.
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
        -- In the indexed plan: scans the index until enough vectors have been found that the caller may read.
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

-- In the indexed plan: the documents of found or kept passages, if they are readable and in scope.
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

-- A row for each word and each passage that has it:
--   times   how often the word occurs, computed from ts_rank, which sums 1/n² over the occurrences and divides by π²/6;
--           it takes the mean over the forms of a word, so it is multiplied by their number (`operands`)
--   titled  whether the word is in the title (A) or heading (B)
--   length  how many different words the passage has
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

-- The number of readable passages with each word. For words in `estimated`, it is computed from their share.
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

-- The weights of each word. Words in fewer readable passages weigh more. `idf` is for the score of a passage, and
-- `share` for the part of the question that a passage covers. Frequencies in few passages mean little, so `share`
-- assumes a hundred more passages without the word. An added word counts as at least as frequent as the word that it
-- replaces.
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

-- The total weight of the question in each language, without added words and the stop words of that language.
questions AS MATERIALIZED (
    SELECT words.language, sum(weights.share) AS share
    FROM words
    JOIN weights ON weights.number = words.number
    WHERE words.number <= :'asked'
    GROUP BY words.language
),

-- The mean number of different words in a readable passage. If it is unknown, the mean of the passages in `hits`.
mean AS MATERIALIZED (
    SELECT coalesce(nullif(:'mean_length'::double precision, 0), avg(hits.length)) AS length FROM hits
),

-- The best passages by words, by BM25 with k1 = 0.9 and b = 0.75. A word counts as often as the question has it. Half
-- of its weight is added if it is in the title or heading.
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

-- All passages found or kept. The join with `readable` ensures that no result is from an unreadable document.
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

-- The score of each candidate by all words, computed as in `worded`, and the share of the question that it covers.
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
    -- The words that no readable passage has.
    ARRAY(SELECT frequencies.number FROM frequencies WHERE frequencies.passages = 0) AS unknown,
    -- A single JSON value, because the driver would take several times as long for hundreds of rows. Each candidate is
    -- a list in the order of fusion.Candidate.
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
