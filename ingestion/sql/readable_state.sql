-- A text that changes whenever a document that the caller may read changes. It is the same for all callers who may read
-- the same documents.
\set user_id 1
\set today '2027-01-31'

SELECT
    concat_ws(
        '.',
        count(*),
        sum(
            hashtextextended(
                concat_ws(
                    ' ',
                    document.id,
                    document.version,
                    document.changed_at,
                    document.title,
                    document.folder,
                    document.category
                ),
                0
            )
        )
    ) AS state
FROM ingestion_document AS document
WHERE
    document.version > 0
    AND (document.valid_until IS NULL OR document.valid_until >= :'today'::date)
    AND document.passage_count > 0
    AND document.access_list_id IN (SELECT mine.access_list_id FROM ingestion_readable_entries(:'user_id') AS mine);
