-- How many messages a day: a person's own number, else the largest of their groups', else that of all others.
-- A row without a number stands for as many as they like, as does no row at all.
SELECT CASE WHEN bool_or(allowed.messages IS NULL) THEN NULL ELSE max(allowed.messages) END AS messages
FROM chat_messageallowance AS allowed
WHERE
    allowed.user_id = :'owner'
    OR allowed.group_id IN (SELECT membership.group_id FROM accounts_user_groups AS membership WHERE membership.user_id = :'owner')
    OR (allowed.user_id IS NULL AND allowed.group_id IS NULL)
GROUP BY allowed.user_id IS NULL, allowed.group_id IS NULL
ORDER BY allowed.user_id IS NULL, allowed.group_id IS NULL
LIMIT 1
