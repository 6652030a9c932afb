-- How this person likes answers: those of the project that the conversation is in, then all. The project's are its
-- owner's alone.
SELECT concat_ws(E'\n\n', nullif(project.instructions, ''), nullif(owner.wish, '')) AS wish
FROM accounts_user AS owner
LEFT JOIN history_conversation AS conversation ON conversation.id = :'conversation'
LEFT JOIN history_project AS project ON project.id = conversation.project_id AND project.owner_id = owner.id
WHERE owner.id = :'owner'
