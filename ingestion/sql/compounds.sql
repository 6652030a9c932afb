-- Compounds that end with a word of a question (“mitgliedsbeitrag” for “beitrag”), from German documents that
-- the caller may search. The words are stems, as the index has them. The caller and the scope are those of
-- search.sql.
\set user_id 1
\set today '2027-01-31'
\set include_category ''
\set exclude_category ''
\set scoped false
\set documents '{}'
\set excluding false
\set excluded '{}'
\set to_person false
\set to_groups false
\set ends '{beitrag,frist}'
--   first  minimum number of letters of a compound before the word of `ends`
--   most   maximum number of compounds that are returned for each word
\set first 4
\set most 6

WITH lists AS MATERIALIZED (
    SELECT mine.access_list_id
    FROM ingestion_readable_entries(:'user_id') AS mine
    WHERE
        NOT (:'to_person' OR :'to_groups')
        OR (:'to_person' AND mine.user_id IS NOT NULL)
        OR (:'to_groups' AND mine.group_id IS NOT NULL)
),

held AS MATERIALIZED (
    SELECT each.lexeme, count(*) AS passages
    FROM ingestion_document AS document
    JOIN ingestion_passagewords AS words ON words.document_id = document.id
    CROSS JOIN LATERAL unnest(tsvector_to_array(words.search)) AS each (lexeme)
    WHERE
        document.language = 'german'
        AND document.access_list_id = ANY(ARRAY(SELECT lists.access_list_id FROM lists))
        AND ingestion_is_searched(
            document, (document.access_list_id IN (SELECT lists.access_list_id FROM lists)) IS TRUE, :'today',
            :'include_category', :'exclude_category', :'scoped', :'documents', :'excluding', :'excluded'
        )
        AND length(each.lexeme) > 8
    GROUP BY each.lexeme
)

SELECT ended.word, ended.lexeme
FROM (
    SELECT
        word.word,
        held.lexeme,
        row_number() OVER (PARTITION BY word.word ORDER BY held.passages DESC, held.lexeme) AS place
    FROM unnest(:'ends'::text[]) AS word (word)
    JOIN held ON right(held.lexeme, length(word.word)) = word.word AND length(held.lexeme) >= length(word.word) + :'first'
) AS ended
WHERE ended.place <= :'most'
ORDER BY ended.word, ended.place;
