from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    """Indexes that every search uses: access lists that include everyone, and the languages of documents."""

    dependencies = [
        ("ingestion", "0005_turns_and_sources"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="accessentry",
            index=models.Index(
                condition=Q(user=None, group=None), fields=["access_list"], name="access_entry_everyone"
            ),
        ),
        migrations.AddIndex(
            model_name="document",
            index=models.Index(fields=["language"], name="document_language"),
        ),
    ]
