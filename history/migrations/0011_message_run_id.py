from django.db import migrations, models


class Migration(migrations.Migration):
    """Rename the field as everywhere else; the column keeps its name for the previous version."""

    dependencies = [("history", "0010_message_verification")]
    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameField("message", "exchange", "run_id"),
                migrations.AlterField(
                    "message",
                    "run_id",
                    models.UUIDField(
                        db_column="exchange",
                        db_index=True,
                        help_text="The run that wrote it, of the site's own answers.",
                        null=True,
                    ),
                ),
            ]
        )
    ]
