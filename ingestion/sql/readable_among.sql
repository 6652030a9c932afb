SELECT document.id
FROM ingestion_document AS document
WHERE
    document.id = ANY(%(documents)s::bigint[])
    AND document.access_list_id IN (
-- include: readable
    )
