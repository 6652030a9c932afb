-- The passages that a verified answer cites, in the order of its citations. Whether they are unchanged and
-- readable is checked by verified_answers.sql, not here.
\set answer_id 1

SELECT passage.id AS passage_id
FROM chat_verifiedcitation AS citation
JOIN ingestion_passage AS passage
    ON passage.document_id = citation.document_id AND passage.position = citation.position
WHERE citation.answer_id = :'answer_id'
ORDER BY citation.id
