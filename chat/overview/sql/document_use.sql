-- How answers of a period used documents: the most cited ones (`of` is “most”), and those that were never
-- cited (“never”). `readable` says whether this reader may see the title; of each kind, at most `most` readable
-- documents are listed, and one other. `in_all` and `closed` count all documents of the kind, and those that are
-- not readable.
\set since '2026-01-01'
\set until '2026-01-30'
\set user_id 1
\set most 10

WITH readable AS MATERIALIZED (
    SELECT mine.access_list_id FROM ingestion_readable_entries(:'user_id') AS mine
),

used AS (
    SELECT use.document_id, sum(use.cited) AS cited, sum(use.found) AS found
    FROM chat_documentuse AS use
    WHERE use.day BETWEEN :'since'::date AND :'until'::date
    GROUP BY use.document_id
),

known AS (
    SELECT
        document.id,
        coalesce(nullif(document.title, ''), document.name) AS title,
        document.folder,
        document.created_at,
        coalesce(used.cited, 0)::bigint AS cited,
        coalesce(used.found, 0)::bigint AS found,
        document.access_list_id IN (SELECT readable.access_list_id FROM readable) AS readable
    FROM ingestion_document AS document
    LEFT JOIN used ON used.document_id = document.id
    WHERE document.version > 0
),

ranked AS (
    SELECT
        known.*,
        CASE WHEN known.cited > 0 THEN 'most' ELSE 'never' END AS of,
        row_number() OVER (
            PARTITION BY known.cited > 0, known.readable
            ORDER BY known.cited DESC, known.found DESC, known.created_at, known.id
        ) AS rank,
        count(*) OVER (PARTITION BY known.cited > 0) AS in_all,
        count(*) FILTER (WHERE NOT known.readable) OVER (PARTITION BY known.cited > 0) AS closed
    FROM known
)

SELECT
    ranked.of,
    ranked.id,
    ranked.title,
    ranked.folder,
    ranked.created_at,
    ranked.cited,
    ranked.found,
    ranked.readable,
    ranked.in_all,
    ranked.closed
FROM ranked
WHERE ranked.rank <= CASE WHEN ranked.readable THEN :'most' ELSE 1 END
ORDER BY ranked.of, ranked.rank
