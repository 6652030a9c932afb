import logging

import django.db.models.deletion
from django.db import connection, migrations, models
from django.db.models import F
from django.db.models.functions import MD5

from chatsite.db.threads import reading_everything

logger = logging.getLogger(__name__)

# Documents that were made from the same file: equal owner, readers, folder and name. The newest one is kept,
# but a document that could never be read is not kept instead of one that could.
DOUBLES = """
    SELECT array_agg(document.id ORDER BY (document.version > 0 OR document.status <> 'failed') DESC, document.id DESC)
    FROM ingestion_document AS document
    WHERE NOT EXISTS (SELECT FROM ingestion_sourcefile AS mirrored WHERE mirrored.document_id = document.id)
    GROUP BY document.owner_id, document.access_list_id, document.folder, document.name
    HAVING count(*) > 1
"""
# Columns of other apps that refer to documents.
REFERENCES = """
    SELECT key.conrelid::regclass::text, attribute.attname, EXISTS (
        SELECT FROM pg_attribute AS other
        WHERE other.attrelid = key.conrelid AND other.attname = 'document_version' AND NOT other.attisdropped
    )
    FROM pg_constraint AS key
    JOIN pg_attribute AS attribute ON attribute.attrelid = key.conrelid AND attribute.attnum = key.conkey[1]
    WHERE
        key.contype = 'f'
        AND key.confrelid = 'ingestion_document'::regclass
        AND key.conrelid::regclass::text NOT LIKE 'ingestion\\_%'
"""
OWN_ROWS = ("ingestion_vector", "ingestion_preparedvector", "ingestion_passagewords", "ingestion_passage")
# Of the documents with the same owner, folder and name, the newest gets the identity. Older ones with other
# readers remain separate documents, which must be deleted by hand: an upgrade must not give or take away
# access.
IDENTIFY = """
    UPDATE ingestion_document AS document
    SET origin = CASE WHEN document.owner_id IS NULL THEN 'shared' ELSE 'user:' || document.owner_id END
    WHERE
        NOT EXISTS (SELECT FROM ingestion_sourcefile AS mirrored WHERE mirrored.document_id = document.id)
        AND document.id = (
            SELECT max(other.id)
            FROM ingestion_document AS other
            WHERE
                other.owner_id IS NOT DISTINCT FROM document.owner_id
                AND other.folder = document.folder
                AND other.name = document.name
                AND NOT EXISTS (SELECT FROM ingestion_sourcefile AS mirrored WHERE mirrored.document_id = other.id)
        )
"""
APART = """
    SELECT count(*) FROM ingestion_document AS document
    WHERE
        document.origin IS NULL
        AND NOT EXISTS (SELECT FROM ingestion_sourcefile AS mirrored WHERE mirrored.document_id = document.id)
"""


def merge(cursor, survivor, doubles, references):
    """Move the citations of `doubles` to `survivor`, keep their addresses, and delete them."""
    for table, column, has_version in references:
        # No version has the number 0, so these citations are shown as citations of an earlier version.
        version = ", document_version = 0" if has_version else ""
        cursor.execute(
            f"UPDATE {table} SET {column} = %s{version} WHERE {column} = ANY(%s)", [survivor, doubles]
        )
    cursor.execute(
        "INSERT INTO ingestion_formerid (public_id, document_id)"
        " SELECT public_id, %s FROM ingestion_document WHERE id = ANY(%s)",
        [survivor, doubles],
    )
    cursor.execute(
        "INSERT INTO ingestion_citedname (reader_id, name, document)"
        " SELECT cited.reader_id, cited.name, kept.public_id"
        " FROM ingestion_citedname AS cited"
        " JOIN ingestion_document AS former ON former.public_id = cited.document AND former.id = ANY(%s)"
        " JOIN ingestion_document AS kept ON kept.id = %s"
        " ON CONFLICT DO NOTHING",
        [doubles, survivor],
    )
    cursor.execute(
        "DELETE FROM ingestion_citedname WHERE document IN"
        " (SELECT public_id FROM ingestion_document WHERE id = ANY(%s))",
        [doubles],
    )
    for table in OWN_ROWS:
        cursor.execute(f"DELETE FROM {table} WHERE document_id = ANY(%s)", [doubles])
    cursor.execute("DELETE FROM ingestion_document WHERE id = ANY(%s)", [doubles])


def merge_doubles(apps, schema_editor):
    with reading_everything(), connection.cursor() as cursor:
        cursor.execute(REFERENCES)
        references = cursor.fetchall()
        cursor.execute(DOUBLES)
        groups = [ids for (ids,) in cursor.fetchall()]
        for survivor, *doubles in groups:
            merge(cursor, survivor, doubles, references)
            logger.warning("Documents %s were made from the same file as %s and are merged.", doubles, survivor)
        cursor.execute(IDENTIFY)
        cursor.execute(APART)
        (apart,) = cursor.fetchone()
        if groups:
            number = sum(map(len, groups)) - len(groups)
            logger.warning("Merged %d documents into %d. Their citations and addresses stay.", number, len(groups))
        if apart:
            logger.warning("%d documents share a name with a newer one but have other readers; they stay.", apart)
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # the table itself is changed next


class Migration(migrations.Migration):
    """Allow one document for each owner, folder and name; merge duplicates, whose files become orphans."""

    contract = "0.2 adds documents by `upsert`; before it there was no release."

    dependencies = [
        ("ingestion", "0010_queue_position"),
    ]

    operations = [
        migrations.AddField(
            model_name="document",
            name="origin",
            field=models.CharField(
                editable=False,
                help_text="Namespace of folder and name: user:<id> or shared; null if a SourceFile identifies it.",
                max_length=30,
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="document",
            name="audience_version",
            field=models.PositiveIntegerField(
                default=0, editable=False, help_text="Counts the changes of the access list that were asked for."
            ),
        ),
        migrations.CreateModel(
            name="FormerId",
            fields=[
                ("public_id", models.UUIDField(primary_key=True, serialize=False)),
                (
                    "document",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="former_ids",
                        to="ingestion.document",
                    ),
                ),
            ],
        ),
        migrations.RunPython(merge_doubles, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name="document",
            constraint=models.UniqueConstraint(
                F("origin"), MD5("folder"), MD5("name"), name="document_identity"
            ),
        ),
    ]
