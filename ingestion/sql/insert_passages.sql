-- One row per passage. The search column holds title (A), heading (B) and content (D), stemmed by the
-- document's language; a language that PostgreSQL does not know is indexed word for word.
INSERT INTO ingestion_passage (document_id, position, anchor, page, heading, content, search)
SELECT
    %(document_id)s,
    new.position - 1,
    new.anchor,
    new.page,
    new.heading,
    new.content,
    setweight(to_tsvector(language.configuration, %(title_words)s), 'A')
        || setweight(to_tsvector(language.configuration, new.heading_words), 'B')
        || setweight(to_tsvector(language.configuration, new.content_words), 'D')
FROM
    (
        SELECT coalesce(
            (SELECT oid FROM pg_ts_config WHERE cfgname = %(language)s LIMIT 1), 'simple'::regconfig
        )::regconfig AS configuration
    ) AS language,
    unnest(
        %(anchors)s::text[], %(pages)s::int[], %(headings)s::text[], %(contents)s::text[],
        %(heading_words)s::text[], %(content_words)s::text[]
    ) WITH ORDINALITY AS new (anchor, page, heading, content, heading_words, content_words, position)
RETURNING position, id
