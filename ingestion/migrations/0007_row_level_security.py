from django.db import migrations

# Whom the session reads for: somebody's id, “everything”, or nobody. What is no id is nobody, and no error.
# Each in brackets of its own, so that it is worked out once in a statement and not for each row.
EVERYTHING = "(SELECT current_setting('chatsite.reader', true)) = 'everything'"
READER = """(
    SELECT CASE
        WHEN current_setting('chatsite.reader', true) ~ '^[0-9]{1,18}$'
        THEN current_setting('chatsite.reader', true)::bigint
    END
)"""

# The rule of sql/readable.sql, which must say the same: as themselves, through a group, as one of everyone.
DOCUMENTS = f"""
    {EVERYTHING}
    OR access_list_id IN (
        SELECT entry.access_list_id
        FROM ingestion_accessentry AS entry
        WHERE
            entry.user_id = {READER}
            AND (SELECT reader.is_active FROM accounts_user AS reader WHERE reader.id = {READER})
        UNION ALL
        SELECT entry.access_list_id
        FROM ingestion_accessentry AS entry
        WHERE
            entry.group_id = ANY(ARRAY(
                SELECT membership.group_id FROM accounts_user_groups AS membership WHERE membership.user_id = {READER}
            ))
            AND (SELECT reader.is_active FROM accounts_user AS reader WHERE reader.id = {READER})
        UNION ALL
        SELECT entry.access_list_id
        FROM ingestion_accessentry AS entry
        WHERE
            entry.user_id IS NULL
            AND entry.group_id IS NULL
            AND (SELECT reader.is_active FROM accounts_user AS reader WHERE reader.id = {READER})
            AND (
                entry.guests
                OR (SELECT reader.guest_until IS NULL FROM accounts_user AS reader WHERE reader.id = {READER})
            )
    )
"""
# A passage goes with its document, which is looked up under its own policy. Not EXISTS: the planner would make
# a table of all documents to look up ten passages.
PASSAGES = f"""
    {EVERYTHING}
    OR (SELECT true FROM ingestion_document AS document WHERE document.id = ingestion_passage.document_id)
"""


def locked(table: str, condition: str) -> migrations.RunSQL:
    """The site's own role is bound too, though it owns the table."""
    return migrations.RunSQL(
        [
            f"CREATE POLICY readers ON {table} USING ({condition})",
            f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        ],
        [
            f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY",
            f"DROP POLICY readers ON {table}",
        ],
    )


class Migration(migrations.Migration):
    """The second lock: a query that forgets who asks finds nothing."""

    dependencies = [
        ("accounts", "0003_identity_and_guests"),
        ("ingestion", "0006_search_indexes"),
    ]

    operations = [locked("ingestion_document", DOCUMENTS), locked("ingestion_passage", PASSAGES)]
