-- The scopes that name single documents, such as attached files, among those of a conversation's questions.
SELECT DISTINCT run.options ->> 'scope' AS scope
FROM chat_run AS run
WHERE run.conversation_id = :'conversation' AND starts_with(run.options ->> 'scope', 'document:')
