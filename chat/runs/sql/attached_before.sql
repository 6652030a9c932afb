-- The scopes of questions of a conversation that named documents, such as attached files.
SELECT DISTINCT run.options ->> 'scope' AS scope
FROM chat_run AS run
WHERE run.conversation_id = :'conversation' AND starts_with(run.options ->> 'scope', 'document:')
