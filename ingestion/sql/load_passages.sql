-- The passages found, and whether each document's name, path and id prefix are its own among what the caller
-- may read: a document that they may not read changes no label.
WITH readable AS MATERIALIZED (
-- include: readable
)

SELECT
    passage.id AS passage_id,
    document.id AS document_id,
    document.public_id,
    document.version AS document_version,
    document.name,
    document.folder,
    document.title,
    document.category,
    document.language,
    passage.anchor,
    passage.heading,
    passage.page,
    passage.content,
    NOT EXISTS (
        SELECT 1
        FROM ingestion_document AS other
        WHERE
            other.name = document.name
            AND other.id <> document.id
            AND other.access_list_id IN (SELECT readable.access_list_id FROM readable)
    ) AS name_is_unique,
    NOT EXISTS (
        SELECT 1
        FROM ingestion_document AS other
        WHERE
            other.name = document.name
            AND other.folder = document.folder
            AND other.id <> document.id
            AND other.access_list_id IN (SELECT readable.access_list_id FROM readable)
    ) AS path_is_unique,
    NOT EXISTS (
        SELECT 1
        FROM ingestion_document AS other
        WHERE
            other.public_id BETWEEN (left(document.public_id::text, 8) || '-0000-0000-0000-000000000000')::uuid
            AND (left(document.public_id::text, 8) || '-ffff-ffff-ffff-ffffffffffff')::uuid
            AND other.id <> document.id
            AND other.access_list_id IN (SELECT readable.access_list_id FROM readable)
    ) AS prefix_is_unique
FROM ingestion_passage AS passage
JOIN ingestion_document AS document ON document.id = passage.document_id
WHERE
    passage.id = ANY(%(passage_ids)s::bigint[])
    AND document.version > 0
    AND document.access_list_id IN (SELECT readable.access_list_id FROM readable)
