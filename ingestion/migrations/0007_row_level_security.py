from django.db import migrations

# The reader of the session: a user's id, “everything”, or nobody. A value that is not an id counts as nobody
# and causes no error. Each expression has its own brackets, so that it is evaluated once in a statement and
# not for each row.
EVERYTHING = "(SELECT current_setting('chatsite.reader', true)) = 'everything'"
READER = """(
    SELECT CASE
        WHEN current_setting('chatsite.reader', true) ~ '^[0-9]{1,18}$'
        THEN current_setting('chatsite.reader', true)::bigint
    END
)"""

# The same rule as in sql/readable.sql: access as oneself, through a group, or as one of everyone.
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
# A passage is visible with its document, which is looked up under its own policy. EXISTS is not used, because
# the planner would build a table of all documents to look up ten passages.
PASSAGES = f"""
    {EVERYTHING}
    OR (SELECT true FROM ingestion_document AS document WHERE document.id = ingestion_passage.document_id)
"""


def locked(table: str, condition: str) -> migrations.RunSQL:
    """Apply row-level security to the site's own role too, although it owns the table."""
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
    """Row-level security: a query that does not name its reader finds nothing."""

    dependencies = [
        ("accounts", "0003_identity_and_guests"),
        ("ingestion", "0006_search_indexes"),
    ]

    operations = [locked("ingestion_document", DOCUMENTS), locked("ingestion_passage", PASSAGES)]
