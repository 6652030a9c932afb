SELECT count(*)
FROM ingestion_document AS document
WHERE
    document.version > 0
    AND document.access_list_id IN (
-- include: readable
    )
    AND EXISTS (SELECT 1 FROM ingestion_passage AS passage WHERE passage.document_id = document.id)
