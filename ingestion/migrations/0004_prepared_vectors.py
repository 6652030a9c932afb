import django.db.models.deletion
import pgvector.django.halfvec
from django.db import migrations, models


class Migration(migrations.Migration):
    """Store the digest of each vector's text, and add a table for vectors whose passages do not exist yet."""

    dependencies = [
        ("ingestion", "0003_narrow_tables"),
    ]

    operations = [
        migrations.AddField(
            model_name="vector",
            name="digest",
            field=models.BigIntegerField(
                help_text="Of the text: who reads it again finds it by this.", null=True
            ),
        ),
        migrations.CreateModel(
            name="PreparedVector",
            fields=[
                (
                    "id",
                    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                ("digest", models.BigIntegerField(help_text="Of the text.")),
                ("vector", pgvector.django.halfvec.HalfVectorField()),
                (
                    "document",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="ingestion.document",
                    ),
                ),
                (
                    "space",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="ingestion.embeddingspace",
                    ),
                ),
            ],
            options={"indexes": [models.Index(fields=["document", "space"], name="prepared_document_space")]},
        ),
        migrations.RunSQL(
            # Vectors that are lost in a crash of the database are computed again.
            "ALTER TABLE ingestion_preparedvector SET UNLOGGED",
            migrations.RunSQL.noop,
        ),
    ]
