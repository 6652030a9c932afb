-- Insert passages, and for each one a row with the words of title (A), heading (B) and content (D). The words
-- are stemmed in the document's language, unless PostgreSQL does not support it.
\set document_id 1
\set first 0
\set language english
\set title_words guide
\set anchors '{leave}'
\set pages '{1}'
\set headings '{Leave}'
\set contents '{27 days.}'
\set heading_words '{leave}'
\set content_words '{27 days}'

WITH new AS MATERIALIZED (
    SELECT *
    FROM unnest(
        :'anchors'::text[], :'pages'::int[], :'headings'::text[], :'contents'::text[],
        :'heading_words'::text[], :'content_words'::text[]
    ) WITH ORDINALITY AS new (anchor, page, heading, content, heading_words, content_words, position)
),

passage AS (
    INSERT INTO ingestion_passage (document_id, position, anchor, page, heading, content)
    SELECT :'document_id', :'first'::int + new.position - 1, new.anchor, new.page, new.heading, new.content
    FROM new
    ORDER BY new.position
    RETURNING position, id
),

words AS (
    INSERT INTO ingestion_passagewords (passage_id, document_id, search)
    SELECT
        passage.id,
        :'document_id',
        setweight(to_tsvector(language.configuration, :'title_words'), 'A')
            || setweight(to_tsvector(language.configuration, new.heading_words), 'B')
            || setweight(to_tsvector(language.configuration, new.content_words), 'D')
    FROM passage
    JOIN new ON new.position = passage.position + 1 - :'first'::int
    CROSS JOIN (
        SELECT coalesce(
            (SELECT oid FROM pg_ts_config WHERE cfgname = :'language' LIMIT 1), 'simple'::regconfig
        )::regconfig AS configuration
    ) AS language
)

SELECT passage.position, passage.id FROM passage;
