-- The scopes of a conversation's questions that name documents, such as attached files.
SELECT DISTINCT run.options ->> 'scope' AS scope
FROM chat_run AS run
WHERE run.conversation_id = :'conversation' AND starts_with(run.options ->> 'scope', 'document:')
