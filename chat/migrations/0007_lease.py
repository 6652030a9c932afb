import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

# A page of 8 KB starts with about 28 leases and has room for four more versions of each, so that renewals
# stay within the page (heap-only updates), even while a snapshot briefly keeps old versions.
ROOM = "ALTER TABLE chat_lease SET (fillfactor = 20)"
KEEP = "INSERT INTO chat_lease (run_id, until) SELECT id, lease_until FROM chat_run WHERE finished_at IS NULL"
BRING_BACK = (
    "UPDATE chat_run SET lease_until = lease.until FROM chat_lease AS lease WHERE lease.run_id = chat_run.id"
)


class Migration(migrations.Migration):
    contract = (
        "Leases are rows of their own; a version from before the first release wrote chat_run.lease_until."
    )

    dependencies = [("chat", "0006_caps_and_allowances")]

    operations = [
        migrations.CreateModel(
            name="Lease",
            fields=[
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="lease",
                        serialize=False,
                        to="chat.run",
                    ),
                ),
                ("until", models.DateTimeField(help_text="Past this moment, the run's process is dead.")),
            ],
        ),
        migrations.RunSQL(ROOM, migrations.RunSQL.noop),
        # Allows reversing the migration: a finished run has no lease.
        migrations.AlterField(
            model_name="run",
            name="lease_until",
            field=models.DateTimeField(default=django.utils.timezone.now),
        ),
        migrations.RunSQL(KEEP, BRING_BACK),
        migrations.RemoveIndex(model_name="run", name="run_unfinished"),
        migrations.RemoveField(model_name="run", name="lease_until"),
    ]
