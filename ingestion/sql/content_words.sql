-- The words of a question, without the stop words of its language.
\set words '{the,annual,leave}'
\set language english

SELECT word.text AS word
FROM unnest(:'words'::text[]) WITH ORDINALITY AS word (text, number)
WHERE
    numnode(
        plainto_tsquery(
            coalesce((SELECT oid FROM pg_ts_config WHERE cfgname = :'language' LIMIT 1), 'simple'::regconfig)::regconfig,
            word.text
        )
    ) > 0
ORDER BY word.number;
