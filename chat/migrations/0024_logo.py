from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chat", "0023_plainer_help_texts")]

    # The column keeps its name, which the previous version uses.
    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameField("sitetexts", "mark", "logo"),
                migrations.AlterField(
                    "sitetexts",
                    "logo",
                    models.BinaryField(
                        db_column="mark",
                        help_text="A PNG that the site made from an uploaded image.",
                        null=True,
                    ),
                ),
            ]
        )
    ]
