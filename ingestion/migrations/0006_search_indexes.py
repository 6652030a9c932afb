from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    """Indexes for what every search asks: the access lists of everyone, and the languages that occur."""

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
