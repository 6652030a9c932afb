-- At most two: more than one means that the name alone says nothing to this reader.
SELECT document.id
FROM ingestion_document AS document
WHERE
    document.name = %(name)s
    AND (%(folder)s::text IS NULL OR document.folder = %(folder)s)
    AND document.access_list_id IN (
-- include: readable
    )
LIMIT 2
