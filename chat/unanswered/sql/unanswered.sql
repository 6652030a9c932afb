-- The grouped unanswered questions since a certain time, newest first, without their texts. Deletions,
-- dismissals and withdrawals of consent (`shared`) after the questions were judged are taken into account.
\set since '2026-01-01'

SELECT
    question.message_id,
    question.owner_id,
    account.guest_until IS NULL AND account.service_for = '' AS is_person,
    question.asked_at,
    question.reasons,
    question.digest,
    question.group_number,
    question.shown,
    question.cited,
    EXISTS (
        SELECT FROM history_feedback AS feedback
        WHERE feedback.message_id = any(question.answers) AND feedback.shared
    ) AS shared
FROM chat_unansweredquestion AS question
JOIN history_conversation AS conversation ON conversation.id = question.conversation_id
JOIN accounts_user AS account ON account.id = question.owner_id
WHERE
    question.group_number IS NOT NULL
    AND question.asked_at >= :'since'::timestamptz
    AND conversation.listed
    AND conversation.deleted_at IS NULL
    AND NOT EXISTS (
        SELECT FROM chat_dismissedquestion AS dismissed
        WHERE dismissed.digest = question.digest AND dismissed.dismissed_at >= question.asked_at
    )
ORDER BY question.asked_at DESC
