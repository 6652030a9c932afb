from django.db import migrations

# Like the policy of history_source: the copied words of a document are visible with the document, which is
# looked up under its own policy.
POLICY = """
CREATE POLICY readers ON chat_verifiedcitation USING (
    (SELECT current_setting('chatsite.reader', true)) = 'everything'
    OR (SELECT true FROM ingestion_document AS document WHERE document.id = chat_verifiedcitation.document_id)
)
"""


class Migration(migrations.Migration):
    """Restrict the words that verified answers quote to the readers of the documents."""

    dependencies = [
        ("chat", "0024_logo"),
        ("ingestion", "0007_row_level_security"),
    ]

    operations = [
        migrations.RunSQL(
            [
                POLICY,
                "ALTER TABLE chat_verifiedcitation ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
            ],
            [
                "ALTER TABLE chat_verifiedcitation NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY",
                "DROP POLICY readers ON chat_verifiedcitation",
            ],
        ),
    ]
