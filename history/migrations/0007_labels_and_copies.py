from django.db import migrations, models

LABELS = """
UPDATE history_message AS message
SET labels = given.labels
FROM (
    SELECT source.message_id, jsonb_agg(source.label ORDER BY source.rank) AS labels
    FROM history_source AS source
    GROUP BY source.message_id
) AS given
WHERE given.message_id = message.id
"""
# The names of documents that were cited before names were stored, so that existing URLs keep their meaning.
NAMES = """
INSERT INTO ingestion_citedname (reader_id, name, document)
SELECT DISTINCT conversation.owner_id, md5(split_part(source.label, '#', 1))::uuid, document.public_id
FROM history_source AS source
JOIN history_message AS message ON message.id = source.message_id
JOIN history_conversation AS conversation ON conversation.id = message.conversation_id
JOIN ingestion_document AS document ON document.id = source.document_id
ON CONFLICT DO NOTHING
"""
# Like the policy of ingestion_passage: a copy of a passage is visible with its document, which is looked up
# under its own policy.
SOURCES = """
    (SELECT current_setting('chatsite.reader', true)) = 'everything'
    OR (SELECT true FROM ingestion_document AS document WHERE document.id = history_source.document_id)
"""


class Migration(migrations.Migration):
    """Store with each message the labels of its sources, and restrict copies of passages to their readers."""

    dependencies = [
        ("history", "0006_conversation_search"),
        ("ingestion", "0009_cited_names"),
    ]

    operations = [
        migrations.AddField(
            model_name="message",
            name="labels",
            field=models.JSONField(
                db_default=models.Value([], models.JSONField()),
                default=list,
                help_text="Of each source that the answer was given, by rank, also of those that are gone since.",
            ),
        ),
        migrations.RunSQL([LABELS, NAMES], migrations.RunSQL.noop),
        # Policies cannot be created while checks of the rows that were just written are still pending.
        migrations.RunSQL("SET CONSTRAINTS ALL IMMEDIATE", migrations.RunSQL.noop),
        migrations.RunSQL(
            [
                f"CREATE POLICY readers ON history_source USING ({SOURCES})",
                "ALTER TABLE history_source ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
            ],
            [
                "ALTER TABLE history_source NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY",
                "DROP POLICY readers ON history_source",
            ],
        ),
    ]
