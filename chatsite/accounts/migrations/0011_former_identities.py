from django.db import migrations, models

# A trigger, because the row can be deleted in the admin, with its account, or by a command.
KEEP = """
CREATE FUNCTION accounts_externalidentity_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO accounts_formeridentity (digest, newest_token_at)
    VALUES (md5(OLD.issuer || chr(10) || OLD.subject)::uuid, OLD.newest_token_at)
    ON CONFLICT (digest) DO UPDATE
    SET newest_token_at = greatest(excluded.newest_token_at, accounts_formeridentity.newest_token_at);
    RETURN NULL;
END
$$;
CREATE TRIGGER is_kept AFTER DELETE ON accounts_externalidentity
    FOR EACH ROW WHEN (OLD.newest_token_at > 0) EXECUTE FUNCTION accounts_externalidentity_is_kept();
"""
NO_LONGER = """
DROP TRIGGER is_kept ON accounts_externalidentity;
DROP FUNCTION accounts_externalidentity_is_kept();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0010_newest_token"),
    ]

    operations = [
        migrations.CreateModel(
            name="FormerIdentity",
            fields=[
                ("digest", models.UUIDField(primary_key=True, serialize=False)),
                ("newest_token_at", models.BigIntegerField(help_text="`iat`, in seconds.")),
            ],
        ),
        migrations.RunSQL(KEEP, NO_LONGER),
    ]
