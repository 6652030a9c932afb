-- End some answers of a person. Answers that have already ended are not changed.
WITH ended AS (
    UPDATE history_message AS message
    SET
        state = closing.state,
        content = closing.content,
        search = array_to_tsvector(closing.words),
        finish_reason = closing.finish_reason,
        error_code = closing.error_code,
        citations = closing.citations,
        followups = closing.followups,
        usage = closing.usage,
        verification = closing.verification,
        grade = closing.grade,
        finished_at = :'now'
    FROM jsonb_to_recordset(:'closings'::jsonb) AS closing (
        id uuid, state text, content text, words text[], finish_reason text, error_code text, citations jsonb,
        followups jsonb, usage jsonb, verification jsonb, grade text
    )
    WHERE message.id = closing.id AND message.state IN ('queued', 'streaming')
    RETURNING message.id, message.conversation_id
),

touched AS (
    UPDATE history_conversation SET updated_at = :'now' WHERE id IN (SELECT ended.conversation_id FROM ended)
)

SELECT ended.id FROM ended
