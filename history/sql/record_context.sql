-- Store the sources and steps of an answer before its text begins. A repeated call replaces them.
WITH former AS (
    DELETE FROM history_source WHERE message_id = :'answer' AND rank > :'count'
),

recorded AS (
    INSERT INTO history_source (
        message_id, document_id, document_version, passage_id, rank, label, title, heading, page, content, quotes,
        captions, given, score, ranker_score, found_by
    )
    SELECT
        :'answer', source.document_id, source.document_version, source.passage_id, source.rank, source.label,
        source.title, source.heading, source.page, source.content, '[]', source.captions, source.given, source.score,
        source.ranker_score, source.found_by
    FROM jsonb_to_recordset(:'sources'::jsonb) AS source (
        document_id bigint, document_version integer, passage_id bigint, rank integer, label text, title text,
        heading text, page integer, content text, captions jsonb, given text, score double precision,
        ranker_score double precision, found_by text
    )
    ON CONFLICT (message_id, rank) DO UPDATE SET
        document_id = excluded.document_id,
        document_version = excluded.document_version,
        passage_id = excluded.passage_id,
        label = excluded.label,
        title = excluded.title,
        heading = excluded.heading,
        page = excluded.page,
        content = excluded.content,
        quotes = excluded.quotes,
        captions = excluded.captions,
        given = excluded.given,
        score = excluded.score,
        ranker_score = excluded.ranker_score,
        found_by = excluded.found_by
),

-- From now on, these names of documents mean these documents for the person who asked.
named AS (
    INSERT INTO ingestion_citedname (reader_id, name, document)
    SELECT DISTINCT conversation.owner_id, md5(split_part(source.label, '#', 1))::uuid, source.public_id
    FROM jsonb_to_recordset(:'sources'::jsonb) AS source (label text, public_id uuid)
    CROSS JOIN history_message AS message
    JOIN history_conversation AS conversation ON conversation.id = message.conversation_id
    WHERE message.id = :'answer' AND source.public_id IS NOT NULL
    ON CONFLICT DO NOTHING
)

UPDATE history_message
SET
    state = 'streaming',
    labels = :'labels'::jsonb,
    thoughts = :'thoughts'::jsonb,
    searched_count = :'readable',
    verified = :'verified'::jsonb
WHERE id = :'answer' AND state IN ('queued', 'streaming')
