-- One row per passage, and one of its words: title (A), heading (B) and content (D), stemmed by the document's
-- language; a language that PostgreSQL does not know is indexed word for word.
WITH new AS MATERIALIZED (
    SELECT *
    FROM unnest(
        %(anchors)s::text[], %(pages)s::int[], %(headings)s::text[], %(contents)s::text[],
        %(heading_words)s::text[], %(content_words)s::text[]
    ) WITH ORDINALITY AS new (anchor, page, heading, content, heading_words, content_words, position)
),

passage AS (
    INSERT INTO ingestion_passage (document_id, position, anchor, page, heading, content)
    SELECT %(document_id)s, %(first)s::int + new.position - 1, new.anchor, new.page, new.heading, new.content
    FROM new
    ORDER BY new.position
    RETURNING position, id
),

words AS (
    INSERT INTO ingestion_passagewords (passage_id, document_id, search)
    SELECT
        passage.id,
        %(document_id)s,
        setweight(to_tsvector(language.configuration, %(title_words)s), 'A')
            || setweight(to_tsvector(language.configuration, new.heading_words), 'B')
            || setweight(to_tsvector(language.configuration, new.content_words), 'D')
    FROM passage
    JOIN new ON new.position = passage.position + 1 - %(first)s::int
    CROSS JOIN (
        SELECT coalesce(
            (SELECT oid FROM pg_ts_config WHERE cfgname = %(language)s LIMIT 1), 'simple'::regconfig
        )::regconfig AS configuration
    ) AS language
)

SELECT passage.position, passage.id FROM passage
