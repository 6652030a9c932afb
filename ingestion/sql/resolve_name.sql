-- What the name alone can mean to this reader, the newest first: documents that were read in, and not their namesakes
-- that are empty, failed or still waiting.
SELECT document.id
FROM ingestion_document AS document
WHERE
    document.name = %(name)s
    AND (%(folder)s::text IS NULL OR document.folder = %(folder)s)
    AND document.version > 0
    AND document.access_list_id IN (
-- include: readable
    )
ORDER BY document.id DESC
LIMIT %(most)s
