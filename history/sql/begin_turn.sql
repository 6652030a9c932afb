-- Append a question and its queued answer to the chosen branch of a conversation; create the conversation if it is new.
-- The caller holds the lock of an existing conversation.
WITH opened AS (
    INSERT INTO history_conversation (
        id, owner_id, title, title_by_owner, mode, listed, scope, project_id, created_at, updated_at, search
    )
    SELECT
        :'conversation', :'owner', :'title', false, :'mode', :'listed', :'scope', :'project'::uuid, :'now', :'now',
        array_to_tsvector(:'title_words'::text[])
    WHERE :'opens'
),

continued AS (
    UPDATE history_conversation SET updated_at = :'now', scope = :'scope', archived_at = NULL
    WHERE id = :'conversation' AND NOT :'opens'
    RETURNING project_id
),

-- Skip a locked project instead of waiting for it: if it is being deleted, the deletion may be waiting for this
-- conversation. Do not change another person's project, because its owner must not see when a member asks.
used AS (
    UPDATE history_project SET updated_at = :'now'
    WHERE id = (
        SELECT project.id
        FROM history_project AS project
        WHERE project.id = coalesce(:'project'::uuid, (SELECT continued.project_id FROM continued))
            AND project.owner_id = :'owner'
        FOR NO KEY UPDATE SKIP LOCKED
    )
),

place AS (
    SELECT
        coalesce(max(said.position) + 1, 0) AS position,
        coalesce(
            (
                SELECT shown.position
                FROM history_message AS shown
                WHERE shown.conversation_id = :'conversation' AND shown.chosen
                ORDER BY shown.position DESC
                LIMIT 1
            ),
            -1
        ) AS before
    FROM history_message AS said
    WHERE said.conversation_id = :'conversation'
)

INSERT INTO history_message (
    id, conversation_id, position, follows, role, content, state, exchange, agent_name, search, request_id, created_at,
    finish_reason, error_code, imported, content_type, citations, followups, thoughts, usage
)
SELECT
    added.id, :'conversation', place.position + added.step,
    CASE WHEN added.step = 0 THEN nullif(place.before, place.position - 1) END, added.role, added.content, added.state, added.run_id,
    added.agent_name, array_to_tsvector(added.words), :'request_id', :'now',
    '', '', false, '', '[]', '[]', '[]', '{}'
FROM place
CROSS JOIN (
    VALUES
    (0, :'question'::uuid, 'user', :'text', 'complete', NULL::uuid, '', :'words'::text[]),
    (1, :'answer'::uuid, 'assistant', '', 'queued', :'run_id'::uuid, :'agent_name', NULL)
) AS added (step, id, role, content, state, run_id, agent_name, words)
RETURNING position
