-- Instructions for answers to a person: those of the conversation's project, then the person's own. A
-- project's instructions apply to its owner and its current members (by the rule IS_MEMBER in
-- history/models/conversations.py).
SELECT concat_ws(E'\n\n', nullif(project.instructions, ''), nullif(owner.wish, '')) AS wish
FROM accounts_user AS owner
LEFT JOIN history_conversation AS conversation ON conversation.id = :'conversation'
LEFT JOIN history_project AS project ON project.id = conversation.project_id
    AND (
        project.owner_id = owner.id
        OR (
            project.access_list_id IN (SELECT mine.access_list_id FROM ingestion_readable_entries(:'owner') AS mine)
            AND EXISTS (SELECT FROM accounts_user AS maker WHERE maker.id = project.owner_id AND maker.is_active)
        )
    )
WHERE owner.id = :'owner'
