-- The sources of a message that a person may open now, best first. This is SQL because it runs for every reader of
-- every answer, and Django's ORM took longer to build the query than PostgreSQL to run it.
SELECT
    source.rank, source.label, source.title, source.heading, source.page, document.category, source.content,
    source.score, source.found_by, source.passage_id, document.public_id::text AS document_id,
    source.ranker_score, source.captions::text AS captions, source.given
FROM history_source AS source
JOIN ingestion_document AS document ON document.id = source.document_id
WHERE
    source.message_id = :'message_id'
    AND EXISTS (
        SELECT FROM ingestion_readable_entries(:'user_id') AS mine WHERE mine.access_list_id = document.access_list_id
    )
ORDER BY source.rank
