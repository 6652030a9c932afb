-- The words asked without those that the language calls stop words.
SELECT word.text AS word
FROM unnest(%(words)s::text[]) WITH ORDINALITY AS word (text, number)
WHERE
    numnode(
        plainto_tsquery(
            coalesce((SELECT oid FROM pg_ts_config WHERE cfgname = %(language)s LIMIT 1), 'simple'::regconfig)::regconfig,
            word.text
        )
    ) > 0
ORDER BY word.number
