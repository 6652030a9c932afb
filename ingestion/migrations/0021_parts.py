from django.db import migrations, models
from django.db.models import F
from django.db.models.functions import MD5

# A change of an archive or a message changes its parts in the same statement. The function reads everything,
# because the change may take away its caller's right to read the document.
FUNCTION = """
CREATE FUNCTION ingestion_carry_parts() RETURNS trigger
LANGUAGE plpgsql
AS $$
DECLARE
    reader text := current_setting('chatsite.reader', true);
BEGIN
    PERFORM set_config('chatsite.reader', 'everything', true);
    UPDATE ingestion_document AS part
    SET
        access_list_id = NEW.access_list_id,
        owner_id = NEW.owner_id,
        category = NEW.category,
        labels = NEW.labels,
        valid_until = NEW.valid_until,
        folder = left(
            concat_ws(
                '/', nullif(NEW.folder, ''), NEW.name, nullif(regexp_replace(part.part_path, '/?[^/]*$', ''), '')
            ),
            500
        )
    WHERE part.part_of_id = NEW.id;
    PERFORM set_config('chatsite.reader', reader, true);
    RETURN NULL;
END
$$
"""
TRIGGER = """
CREATE TRIGGER carries_parts AFTER UPDATE OF access_list_id, owner_id, category, labels, valid_until, folder, name
ON ingestion_document FOR EACH ROW
WHEN (
    (OLD.access_list_id, OLD.owner_id, OLD.category, OLD.labels, OLD.valid_until, OLD.folder, OLD.name)
    IS DISTINCT FROM
    (NEW.access_list_id, NEW.owner_id, NEW.category, NEW.labels, NEW.valid_until, NEW.folder, NEW.name)
)
EXECUTE FUNCTION ingestion_carry_parts()
"""


class Migration(migrations.Migration):
    """Files in archives and messages become separate documents when these are read the next time."""

    contract = "The constraint only concerns parts, which the previous version never writes."

    dependencies = [
        ("ingestion", "0020_former_versions"),
    ]

    operations = [
        migrations.AddField(
            model_name="document",
            name="left_out",
            field=models.JSONField(
                db_default=models.Value([], models.JSONField()),
                default=list,
                editable=False,
                help_text="Files in it that did not become documents, as [path, reason].",
            ),
        ),
        migrations.AddField(
            model_name="document",
            name="part_of",
            field=models.ForeignKey(
                db_index=False,
                editable=False,
                help_text=(
                    "The archive or message that it is in; a trigger keeps its owner, readers, category, labels and"
                    " last day the same."
                ),
                null=True,
                on_delete=models.CASCADE,
                related_name="parts",
                to="ingestion.document",
            ),
        ),
        migrations.AddField(
            model_name="document",
            name="part_path",
            field=models.CharField(
                db_default="",
                default="",
                editable=False,
                help_text="Path in the archive or message, which identifies the part.",
                max_length=1000,
            ),
        ),
        migrations.AddConstraint(
            model_name="document",
            constraint=models.UniqueConstraint(
                F("part_of"),
                MD5("part_path"),
                condition=models.Q(part_of__isnull=False),
                name="document_part",
            ),
        ),
        migrations.RunSQL(
            [FUNCTION, TRIGGER],
            [
                "DROP TRIGGER carries_parts ON ingestion_document",
                "DROP FUNCTION ingestion_carry_parts",
            ],
        ),
    ]
