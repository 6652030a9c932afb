-- Entries of the glossary that a reader may see. If phrases are given, the entries with one of them as a name;
-- otherwise the terms that have a meaning.
\set user_id 1
\set phrases '{leave,"annual leave"}'
\set most 2000

SELECT word.id, word.kind, word.term, word.synonyms, word.keys, word.meaning
FROM ingestion_houseword AS word
WHERE
    (
        word.keys && :'phrases'::text[]
        OR (:'phrases'::text[] IS NULL AND word.kind = 'term' AND word.meaning <> '')
    )
    AND (
        NOT word.restricted
        OR EXISTS (
            SELECT
            FROM ingestion_houseword_groups AS audience
            JOIN accounts_user_groups AS membership ON membership.group_id = audience.group_id
            WHERE audience.houseword_id = word.id AND membership.user_id = :'user_id'
        )
    )
ORDER BY word.term, word.id
LIMIT :most;
