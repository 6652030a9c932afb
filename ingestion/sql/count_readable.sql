SELECT count(*)
FROM ingestion_document AS document
WHERE
    document.version > 0
    AND document.passage_count > 0
    AND document.access_list_id IN (
-- include: readable
    )
