from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0032_project_members")]

    operations = [
        migrations.AddField(
            model_name="look",
            name="searched",
            field=models.BooleanField(
                db_default=False, default=False, help_text="A search with the rights of the person."
            ),
        )
    ]
