-- Each word of the question, stemmed by each language that occurs. A stop word has no query (no nodes). A word
-- that is sought otherwise has a query of its own beside.
parsed AS MATERIALIZED (
    SELECT
        word.number,
        language.language,
        language.configuration,
        plainto_tsquery(language.configuration, word.text) AS query,
        to_tsquery(language.configuration, nullif(word.otherwise, '')) AS otherwise
    FROM unnest(%(words)s::text[], %(otherwise)s::text[]) WITH ORDINALITY AS word (text, otherwise, number)
    CROSS JOIN (
        SELECT languages.language, coalesce(known.oid, 'simple'::regconfig)::regconfig AS configuration
        FROM languages
        LEFT JOIN pg_ts_config AS known
            ON known.cfgname = languages.language AND known.cfgnamespace = 'pg_catalog'::regnamespace
        WHERE languages.language IS NOT NULL
    ) AS language
),

-- What some language here calls a stop word is none of the words sought where the language is unknown.
words AS MATERIALIZED (
    SELECT
        parsed.number,
        parsed.language,
        CASE WHEN numnode(parsed.otherwise) > 0 THEN parsed.otherwise ELSE parsed.query END AS query,
        CASE WHEN numnode(parsed.otherwise) > 0 THEN (numnode(parsed.otherwise) + 1) / 2 ELSE 1 END AS operands
    FROM parsed
    WHERE
        numnode(parsed.query) > 0
        AND NOT (
            parsed.configuration = 'simple'::regconfig
            AND EXISTS (
                SELECT 1 FROM parsed AS other WHERE other.number = parsed.number AND numnode(other.query) = 0
            )
        )
)
