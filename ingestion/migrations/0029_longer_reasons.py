from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('ingestion', '0028_plainer_help_texts'),
    ]

    # Only the limit of a varchar grows, so that PostgreSQL does not rewrite the table.
    operations = [
        migrations.AlterField(
            model_name='document',
            name='reason',
            field=models.CharField(blank=True, max_length=1000),
        ),
    ]
