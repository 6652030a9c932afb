from django.db import migrations, models


class Migration(migrations.Migration):
    contract = "0.2 reads `queue_position`; before it there was no release."

    dependencies = [
        ("ingestion", "0009_cited_names"),
    ]

    operations = [
        migrations.RemoveIndex(model_name="document", name="document_turns"),
        migrations.RenameField(model_name="document", old_name="turn", new_name="queue_position"),
        migrations.AddIndex(
            model_name="document",
            index=models.Index(
                condition=models.Q(("status__in", ("waiting", "reading", "indexing"))),
                fields=["owner", "queue_position"],
                name="document_queue",
            ),
        ),
    ]
