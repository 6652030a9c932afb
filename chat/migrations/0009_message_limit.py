from django.db import migrations

# The daily message limit of a person: their own allowance, or else the largest of their groups', or else the
# general one. NULL and no row both mean that there is no limit. RETURNS TABLE lets the planner inline the
# function.
MESSAGE_LIMIT = """
CREATE FUNCTION chat_message_limit(person bigint)
RETURNS TABLE (messages integer)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
BEGIN ATOMIC
    SELECT CASE WHEN bool_or(allowed.messages IS NULL) THEN NULL ELSE max(allowed.messages) END
    FROM chat_messageallowance AS allowed
    WHERE
        allowed.user_id = person
        OR allowed.group_id IN (
            SELECT membership.group_id FROM accounts_user_groups AS membership WHERE membership.user_id = person
        )
        OR (allowed.user_id IS NULL AND allowed.group_id IS NULL)
    GROUP BY allowed.user_id IS NULL, allowed.group_id IS NULL
    ORDER BY allowed.user_id IS NULL, allowed.group_id IS NULL
    LIMIT 1;
END
"""


class Migration(migrations.Migration):
    dependencies = [("chat", "0008_journal_key"), ("accounts", "0011_former_identities")]
    operations = [
        migrations.RunSQL(MESSAGE_LIMIT, "DROP FUNCTION chat_message_limit(bigint)"),
    ]
