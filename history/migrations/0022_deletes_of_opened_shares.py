from django.db import migrations

from chatsite.db.foreign_keys import act_on_delete

# The previous version deletes rows to which this table refers, without knowing the table.
DELETED = ("history_openedshare.reader_id", "history_openedshare.share_id")


class Migration(migrations.Migration):
    atomic = False  # each table is locked only briefly, and not while another one is validated

    dependencies = [
        ('history', '0021_opened_shares'),
    ]

    operations = [
        migrations.RunSQL(act_on_delete("CASCADE", DELETED), migrations.RunSQL.noop),
    ]
