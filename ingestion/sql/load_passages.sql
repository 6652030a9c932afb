-- The passages found, and whether the name, path and id prefix of each document are unique for the caller.
--
-- An id prefix must be unique among all documents that the caller may read; a name or path, without regard to
-- letter case, only among those of them that have been processed successfully at least once. A name or path is
-- not unique if another document was once cited to the caller under it, even if that document is gone.
-- Otherwise, documents that the caller may not read do not affect the result. Ids are given as arrays because
-- the planner then always finds the rows by id, despite the policies on the tables.
\set user_id 1
\set passage_ids '{1,2}'

WITH readable AS MATERIALIZED (
    SELECT mine.access_list_id FROM ingestion_readable_entries(:'user_id') AS mine
),

passage AS MATERIALIZED (
    SELECT * FROM ingestion_passage AS every WHERE every.id = ANY(:'passage_ids'::bigint[])
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
    document.source_url,
    document.language,
    passage.anchor,
    passage.heading,
    passage.page,
    passage.content,
    NOT EXISTS (
        SELECT 1
        FROM ingestion_document AS other
        WHERE
            other.folded_name = document.folded_name
            AND other.id <> document.id
            AND other.version > 0
            AND (other.access_list_id IN (SELECT readable.access_list_id FROM readable)) IS TRUE
    ) AND NOT EXISTS (
        SELECT 1
        FROM ingestion_citedname AS cited
        WHERE
            cited.reader_id = :'user_id'
            AND cited.name = md5(document.name)::uuid
            AND cited.document <> document.public_id
    ) AS name_is_unique,
    NOT EXISTS (
        SELECT 1
        FROM ingestion_document AS other
        WHERE
            other.folded_name = document.folded_name
            AND lower(other.folder) = lower(document.folder)
            AND other.id <> document.id
            AND other.version > 0
            AND (other.access_list_id IN (SELECT readable.access_list_id FROM readable)) IS TRUE
    ) AND NOT EXISTS (
        SELECT 1
        FROM ingestion_citedname AS cited
        WHERE
            cited.reader_id = :'user_id'
            AND cited.name = md5(document.folder || '/' || document.name)::uuid
            AND cited.document <> document.public_id
    ) AS path_is_unique,
    NOT EXISTS (
        SELECT 1
        FROM ingestion_document AS other
        WHERE
            other.public_id BETWEEN (left(document.public_id::text, 8) || '-0000-0000-0000-000000000000')::uuid
            AND (left(document.public_id::text, 8) || '-ffff-ffff-ffff-ffffffffffff')::uuid
            AND other.id <> document.id
            AND (other.access_list_id IN (SELECT readable.access_list_id FROM readable)) IS TRUE
    ) AS prefix_is_unique
FROM passage
JOIN ingestion_document AS document ON document.id = passage.document_id
WHERE
    document.id = ANY(ARRAY(SELECT passage.document_id FROM passage))
    AND document.version > 0
    AND (document.access_list_id IN (SELECT readable.access_list_id FROM readable)) IS TRUE;
