-- Store which character ranges of each source an answer quotes; `quotes` has the ranges by rank of the source.
\set answer '00000000-0000-0000-0000-000000000000'
\set quotes '{"1": [[0, 12]]}'

UPDATE history_source AS source
SET quotes = quoted.ranges
FROM jsonb_each(:'quotes'::jsonb) AS quoted (rank, ranges)
WHERE source.message_id = :'answer' AND source.rank = quoted.rank::integer
