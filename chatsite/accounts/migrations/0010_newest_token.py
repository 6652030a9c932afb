from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0009_key_expiry"),
    ]

    operations = [
        migrations.AddField(
            model_name="externalidentity",
            name="newest_token_at",
            field=models.BigIntegerField(
                db_default=0,
                default=0,
                editable=False,
                help_text="`iat` of the newest token, in seconds: older ones change no memberships.",
            ),
        ),
    ]
