SELECT document.id
FROM ingestion_document AS document
WHERE
    document.public_id BETWEEN %(lowest)s AND %(highest)s
    AND document.version > 0
    AND document.access_list_id IN (
-- include: readable
    )
ORDER BY document.id DESC
LIMIT %(most)s
