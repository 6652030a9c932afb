from django.db import migrations

TABLES = ("ingestion_passage", "ingestion_passagewords", "ingestion_vector")


class Migration(migrations.Migration):
    """Vacuum when a twentieth of a table's rows are dead, because searches skip them one by one."""

    dependencies = [
        ("ingestion", "0007_row_level_security"),
    ]

    operations = [
        migrations.RunSQL(
            [
                f"ALTER TABLE {table} SET (autovacuum_vacuum_scale_factor = 0.05,"
                " autovacuum_vacuum_threshold = 1000)"
                for table in TABLES
            ],
            [
                f"ALTER TABLE {table} RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold)"
                for table in TABLES
            ],
        ),
    ]
