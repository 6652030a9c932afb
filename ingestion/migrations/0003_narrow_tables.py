import django.contrib.postgres.search
import django.db.models.deletion
from django.contrib.postgres.indexes import GinIndex
from django.db import migrations, models


class Migration(migrations.Migration):
    """Move the words of passages to a separate table, and store each document's number of passages."""

    dependencies = [
        ("ingestion", "0002_guests"),
    ]

    operations = [
        migrations.CreateModel(
            name="PassageWords",
            fields=[
                (
                    "passage",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="ingestion.passage",
                    ),
                ),
                (
                    "document",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="ingestion.document"
                    ),
                ),
                ("search", django.contrib.postgres.search.SearchVectorField(editable=False)),
            ],
        ),
        migrations.AddField(
            model_name="document",
            name="passage_count",
            field=models.PositiveIntegerField(
                default=0,
                editable=False,
                help_text="Search chooses its plan by how many passages one may read.",
            ),
        ),
        # Allows reversing the migration: the column is added before it is filled.
        migrations.AlterField(
            model_name="passage",
            name="search",
            field=django.contrib.postgres.search.SearchVectorField(editable=False, null=True),
        ),
        migrations.RunSQL(
            [
                """
                INSERT INTO ingestion_passagewords (passage_id, document_id, search)
                SELECT id, document_id, search FROM ingestion_passage ORDER BY id
                """,
                """
                UPDATE ingestion_document AS document SET passage_count = counted.passages
                FROM (SELECT document_id, count(*) AS passages FROM ingestion_passage GROUP BY document_id) AS counted
                WHERE counted.document_id = document.id
                """,
                "SET CONSTRAINTS ALL IMMEDIATE",  # the next statements change the tables themselves
                "DROP INDEX passage_search",
            ],
            [
                """
                UPDATE ingestion_passage AS passage SET search = words.search
                FROM ingestion_passagewords AS words WHERE words.passage_id = passage.id
                """,
                "SET CONSTRAINTS ALL IMMEDIATE",
                "CREATE INDEX passage_search ON ingestion_passage USING gin (search, (ARRAY[document_id]))",
            ],
        ),
        migrations.RemoveField(model_name="passage", name="search"),
        # Created after the rows, because an index that is built at once is smaller than one that has grown.
        migrations.AddIndex(
            model_name="passagewords", index=GinIndex(fields=["search"], name="passage_words_search")
        ),
        migrations.AlterField(
            model_name="vector",
            name="document",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="ingestion.document",
            ),
        ),
        migrations.AlterField(
            model_name="vector",
            name="space",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="ingestion.embeddingspace",
            ),
        ),
        migrations.AddIndex(
            model_name="vector",
            index=models.Index(fields=["document", "space"], name="vector_document_space"),
        ),
    ]
