-- How much the caller may search, of how much there is, and, of a large corpus, which words of the question occur
-- together in how many passages of a sample of it. How much is estimated from a sample of documents where that
-- holds enough of them, else counted. Also how many different words its passages have on average, by some of them.
-- A reader of much of a large corpus gets a second sample, of every 17th passage, which has an index of its own
-- (passage_words_sample): of those with one of the less common words, which words they have (`counted`). And, of a
-- large or a small corpus, the words that no readable passage has (`absent`), as far as a look at those with them is
-- short.
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
\set words '{annual,leave}'
\set otherwise '{"",""}'
\set stems '{"polish": ["annual", "leav"]}'
\set asked 2
-- Documents of the sample, and how many of them must be readable to estimate from them; about how many passages are
-- measured; passages of the sample, where there are more passages than `large` and more readable ones than `max_scan`.
\set probes 1000
\set min_probed 20
\set measured 300
\set sampled 1500
\set large 100000
\set max_scan 4000
-- Where there are more than so many passages, and more than so many may be read, words are counted in every 17th
-- passage, the least common first, until about so many passages are fetched for them; up to twice as many where few of
-- these may be read.
\set counted_from 300000
\set max_mixed 20000
\set max_counted 2500
-- A word that is not in the sample is absent if it is in fewer passages than this, and none of them is readable.
\set max_seldom 50

WITH lists AS MATERIALIZED (
    SELECT mine.access_list_id
    FROM ingestion_readable_entries(:'user_id') AS mine
    WHERE
        NOT (:'to_person' OR :'to_groups')
        OR (:'to_person' AND mine.user_id IS NOT NULL)
        OR (:'to_groups' AND mine.group_id IS NOT NULL)
),

probed AS MATERIALIZED (
    SELECT document.id, document.language, document.passage_count
    FROM ingestion_document AS document
    WHERE
        document.id = ANY(ARRAY(
            -- Numbers of documents, spread evenly over all that were ever given.
            SELECT DISTINCT 1 + given.last_value * probe.number / :'probes'
            FROM ingestion_document_id_seq AS given
            CROSS JOIN generate_series(0, :'probes' - 1) AS probe (number)
        ))
        AND ingestion_is_searched(
            document, (document.access_list_id IN (SELECT lists.access_list_id FROM lists)) IS TRUE, :'today',
            :'include_category', :'exclude_category', :'scoped', :'documents', :'excluding', :'excluded'
        )
),

-- Inlined where it is used, which may be nowhere.
readable AS NOT MATERIALIZED (
    SELECT document.id, document.language, document.passage_count
    FROM ingestion_document AS document
    WHERE
        document.access_list_id = ANY(ARRAY(SELECT lists.access_list_id FROM lists))
        AND ingestion_is_searched(
            document, (document.access_list_id IN (SELECT lists.access_list_id FROM lists)) IS TRUE, :'today',
            :'include_category', :'exclude_category', :'scoped', :'documents', :'excluding', :'excluded'
        )
),

size AS MATERIALIZED (
    SELECT
        CASE
            WHEN estimated.met >= :'min_probed' THEN estimated.passages
            ELSE (
                SELECT coalesce(sum(readable.passage_count), 0)::bigint
                FROM readable
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
            (sum(probed.passage_count) * greatest(1, max(given.last_value)::numeric / :'probes'))::bigint AS passages
        FROM probed
        CROSS JOIN ingestion_document_id_seq AS given
    ) AS estimated
),

-- Those probed, or, where they are too few to go by, the first of all that are readable: how many documents others
-- have added must not decide.
measured AS MATERIALIZED (
    SELECT probed.id, probed.language
    FROM probed
    WHERE (SELECT count(*) FROM probed) >= :'min_probed'
    UNION ALL
    SELECT first.id, first.language
    FROM (
        SELECT readable.id, readable.language
        FROM readable
        WHERE (SELECT count(*) FROM probed) < :'min_probed'
        ORDER BY readable.id
        LIMIT :'measured'
    ) AS first
),

sample AS MATERIALIZED (
    SELECT passage.search, measured.language
    FROM measured
    CROSS JOIN LATERAL (
        SELECT words.search
        FROM ingestion_passagewords AS words
        WHERE words.document_id = measured.id
        LIMIT 1 + :'sampled' / (SELECT count(*) FROM measured)
    ) AS passage
    WHERE :'asked' > 0 AND (SELECT size.every > :'large' AND size.visible > :'max_scan' FROM size)
    LIMIT :'sampled'
),

lengths AS MATERIALIZED (
    SELECT avg(length(passage.search)) AS mean
    FROM (
        SELECT numbered.id, row_number() OVER (ORDER BY numbered.id) AS place
        FROM measured AS numbered
    ) AS document
    CROSS JOIN LATERAL (
        SELECT words.search
        FROM ingestion_passagewords AS words
        WHERE words.document_id = document.id
        LIMIT 1 + :'measured' / (SELECT count(*) FROM measured)
    ) AS passage
    WHERE :'asked' > 0 AND document.place % (1 + (SELECT count(*) FROM measured) / :'measured') = 0
),

words AS MATERIALIZED (
    SELECT word.number, word.language, word.query
    FROM ingestion_question_words(
        :'words',
        :'otherwise',
        :'stems'::jsonb,
        ARRAY(
            SELECT sample.language FROM sample
            UNION
            -- Of so few passages in all, no word has many.
            SELECT readable.language
            FROM readable
            WHERE (SELECT greatest(size.every, size.visible) <= :'max_scan' FROM size)
        )
    ) AS word
),

sampled AS MATERIALIZED (
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
),

uncommon AS MATERIALIZED (
    SELECT added.number
    FROM (
        SELECT frequency.number, sum(frequency.passages + 1) OVER (ORDER BY frequency.passages, frequency.number) AS total
        FROM (
            SELECT word.number, coalesce(sum(sampled.passages), 0) AS passages
            FROM (SELECT DISTINCT words.number FROM words) AS word
            LEFT JOIN sampled ON word.number = ANY(sampled.numbers)
            GROUP BY word.number
        ) AS frequency
    ) AS added
    CROSS JOIN size
    WHERE
        size.every > :'counted_from'
        AND size.visible > :'max_mixed'
        AND added.total * size.every / 17
        <= :'max_counted' * least(2, sqrt(size.every::double precision / size.visible)) * (SELECT count(*) FROM sample)
),

fetched AS MATERIALIZED (
    SELECT sought.language, passage.document_id, passage.search
    FROM (
        SELECT words.language, string_agg('(' || words.query::text || ')', ' | ')::tsquery AS query
        FROM words
        JOIN uncommon ON uncommon.number = words.number
        GROUP BY words.language
    ) AS sought
    CROSS JOIN LATERAL (
        SELECT passage.document_id, passage.search
        FROM ingestion_passagewords AS passage
        WHERE passage.passage_id % 17 = 0 AND passage.search @@ sought.query
        OFFSET 0
    ) AS passage
),

-- Passages with the words that are asked for and not in the sample.
seldom AS MATERIALIZED (
    SELECT words.number, words.language, passage.document_id
    FROM words
    CROSS JOIN LATERAL (
        SELECT passage.document_id
        FROM ingestion_passagewords AS passage
        WHERE passage.search @@ words.query
        LIMIT :'max_seldom'
    ) AS passage
    WHERE
        words.number <= :'asked'
        AND NOT EXISTS (SELECT FROM sampled WHERE words.number = ANY(sampled.numbers))
),

met AS MATERIALIZED (
    SELECT document.id, document.language
    FROM ingestion_document AS document
    WHERE
        document.id = ANY(
            ARRAY(SELECT fetched.document_id FROM fetched UNION SELECT seldom.document_id FROM seldom)
        )
        AND ingestion_is_searched(
            document, (document.access_list_id IN (SELECT lists.access_list_id FROM lists)) IS TRUE, :'today',
            :'include_category', :'exclude_category', :'scoped', :'documents', :'excluding', :'excluded'
        )
),

-- For each set of words the passages of the sample, or of every 17th, that have exactly these.
held AS MATERIALIZED (
    SELECT sampled.numbers, sampled.passages, false AS counted
    FROM sampled
    UNION ALL
    SELECT each.numbers, count(*) AS passages, true AS counted
    FROM (
        SELECT (
            SELECT array_agg(words.number)
            FROM words
            WHERE words.language = fetched.language AND fetched.search @@ words.query
        ) AS numbers
        FROM fetched
        JOIN met ON met.id = fetched.document_id AND met.language = fetched.language
    ) AS each
    GROUP BY each.numbers
)

SELECT
    size.visible,
    size.every,
    coalesce(lengths.mean, 0) AS mean_length,
    ARRAY(SELECT uncommon.number FROM uncommon) AS uncommon,
    ARRAY(
        SELECT words.number
        FROM words
        LEFT JOIN seldom ON seldom.number = words.number AND seldom.language = words.language
        LEFT JOIN met ON met.id = seldom.document_id AND met.language = seldom.language
        WHERE
            words.number <= :'asked'
            AND NOT EXISTS (SELECT FROM sampled WHERE words.number = ANY(sampled.numbers))
        GROUP BY words.number
        HAVING count(met.id) = 0 AND count(seldom.document_id) < :'max_seldom'
        ORDER BY words.number
    ) AS absent,
    held.numbers,
    held.passages,
    held.counted
FROM size
CROSS JOIN lengths
LEFT JOIN held ON true;
