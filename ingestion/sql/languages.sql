-- The languages of the documents that the caller may read and asks for, each found by the index from the one
-- before it.
languages AS (
    SELECT (
        SELECT document.language
        FROM ingestion_document AS document
        WHERE
-- include: allowed
        ORDER BY document.language
        LIMIT 1
    ) AS language
    UNION ALL
    SELECT (
        SELECT document.language
        FROM ingestion_document AS document
        WHERE
            document.language > languages.language
            AND
-- include: allowed
        ORDER BY document.language
        LIMIT 1
    )
    FROM languages
    WHERE languages.language IS NOT NULL
)
