-- The stems of the words of a text in each of these languages, without stop words, and how often each occurs.
\set text 'days of annual leave'
\set languages '{english,german}'

SELECT language.name AS language, word.lexeme, cardinality(word.positions) AS times
FROM unnest(:'languages'::text[]) AS language (name)
CROSS JOIN LATERAL unnest(
    to_tsvector(
        coalesce((SELECT oid FROM pg_ts_config WHERE cfgname = language.name LIMIT 1), 'simple'::regconfig)::regconfig,
        :'text'
    )
) AS word;
