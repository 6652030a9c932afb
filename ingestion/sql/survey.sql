-- The numbers from which a search is planned:
--   visible, every     number of passages that the caller may search, and of all passages; `visible` is estimated from
--                      a sample of documents if enough of them are readable, and otherwise counted; `every` is
--                      PostgreSQL's estimate
--   mean_length        mean number of different words in some of the readable passages
--   numbers, passages  in a large corpus: sets of words of the question, and how many sampled passages have exactly them
--   counted            whether `numbers` and `passages` are from the second sample: every 17th passage, with an index of
--                      its own (passage_words_sample); it is only used for readers of much of a large corpus
--   uncommon           words that were looked up in the second sample; its rows only count passages with one of these
--                      words
--   absent             words that no readable passage has, if only few passages had to be checked

-- The caller, the date, the scope and the words are those of search.sql.
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
--   probes      number of sampled documents
--   min_probed  how many of these must be readable for an estimate
--   measured    approximate number of passages whose length is measured
--   sampled     number of sampled passages; there is only a sample if there are more than `large` passages, of which
--               more than `max_scan` are readable
\set probes 1000
\set min_probed 20
\set measured 300
\set sampled 1500
\set large 100000
\set max_scan 4000
-- If there are more than `counted_from` passages, of which more than `max_mixed` are readable, words are also counted
-- in every 17th passage: the least common ones, as long as not more than about `max_counted` passages must be fetched
-- for them; up to twice as many if only a small part is readable.
\set counted_from 300000
\set max_mixed 20000
\set max_counted 2500
-- A word that is not in the sample is absent if fewer than `max_seldom` passages have it, and none of these is
-- readable.
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
            -- Ids that are spread evenly over all ids assigned so far.
            SELECT DISTINCT 1 + given.last_value * probe.number / :'probes'
            FROM ingestion_document_id_seq AS given
            CROSS JOIN generate_series(0, :'probes' - 1) AS probe (number)
        ))
        AND ingestion_is_searched(
            document, (document.access_list_id IN (SELECT lists.access_list_id FROM lists)) IS TRUE, :'today',
            :'include_category', :'exclude_category', :'scoped', :'documents', :'excluding', :'excluded'
        )
),

-- Not materialized, because it often need not run at all.
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

-- The readable documents of the sample. If these are too few, the first of all readable documents: the result then does
-- not depend on how many documents other people have added.
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
            -- A small corpus has no sample, but words may be absent from it, too.
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

-- Passages with words of the question that the sample lacks.
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

-- For each set of words, the number of passages with exactly these words in the sample, and among every 17th passage.
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
