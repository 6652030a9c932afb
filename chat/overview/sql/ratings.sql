-- The numbers of good and bad ratings in a period, and of the reasons for bad ones, by the members of a
-- group; by everyone if the group is null.
\set since '2026-01-01'
\set until '2026-01-30'
\set group_id 0

WITH given AS (
    SELECT feedback.rating, feedback.reasons
    FROM history_feedback AS feedback
    JOIN history_message AS answer ON answer.id = feedback.message_id
    JOIN history_conversation AS conversation ON conversation.id = answer.conversation_id
    WHERE
        feedback.updated_at >= :'since'::timestamptz
        AND feedback.updated_at < :'until'::timestamptz
        AND (
            :'group_id'::int IS NULL
            OR conversation.owner_id IN (
                SELECT member.user_id FROM accounts_user_groups AS member WHERE member.group_id = :'group_id'::int
            )
        )
)

SELECT given.rating AS word, count(*) AS times
FROM given
GROUP BY given.rating
UNION ALL
SELECT reason.word, count(*)
FROM given
CROSS JOIN LATERAL jsonb_array_elements_text(given.reasons) AS reason (word)
WHERE given.rating = 'bad'
GROUP BY reason.word
