-- The questions of the verified answers that one reader can get now. Left out are drafts, answers without an
-- owner, answers past their last day, and answers for other groups; and answers that cite nothing, or a source
-- that is missing, has changed, is past its last day, or is not readable for this reader.
\set user_id 1
\set today '2027-01-31'

WITH readable AS MATERIALIZED (
    SELECT mine.access_list_id FROM ingestion_readable_entries(:'user_id') AS mine
)

SELECT question.answer_id, question.text
FROM chat_verifiedanswer AS answer
JOIN chat_verifiedquestion AS question ON question.answer_id = answer.id
WHERE
    answer.active
    AND answer.owner_id IS NOT NULL
    AND answer.valid_until >= :'today'::date
    AND (
        (
            NOT answer.restricted
            AND NOT EXISTS (
                SELECT FROM chat_verifiedanswer_groups AS chosen WHERE chosen.verifiedanswer_id = answer.id
            )
        )
        OR EXISTS (
            SELECT
            FROM chat_verifiedanswer_groups AS chosen
            JOIN accounts_user_groups AS membership ON membership.group_id = chosen.group_id
            WHERE chosen.verifiedanswer_id = answer.id AND membership.user_id = :'user_id'
        )
    )
    AND answer.citation_count > 0
    AND answer.citation_count = (
        SELECT count(*)
        FROM chat_verifiedcitation AS citation
        JOIN ingestion_document AS document ON document.id = citation.document_id
        JOIN ingestion_passage AS passage
            ON passage.document_id = document.id AND passage.position = citation.position
        WHERE
            citation.answer_id = answer.id
            AND document.version > 0
            AND (document.valid_until IS NULL OR document.valid_until >= :'today'::date)
            AND document.sha256 = citation.sha256
            AND md5(passage.content) = citation.digest
            AND document.access_list_id IN (SELECT readable.access_list_id FROM readable)
    )
ORDER BY answer.changed_at DESC, question.id
