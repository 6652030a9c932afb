from django.db import migrations

# Like the function of migration 0024, which the previous version still calls, with documents to leave out.
IS_SEARCHED = """
CREATE FUNCTION ingestion_is_searched(
    document ingestion_document,
    may_read boolean,
    today date,
    include_category text,
    exclude_category text,
    scoped boolean,
    documents bigint[],
    excluding boolean,
    excluded bigint[]
)
RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
RETURN
    document.version > 0
    AND (document.valid_until IS NULL OR document.valid_until >= today)
    AND may_read
    AND (include_category = '' OR document.category = include_category)
    AND (exclude_category = '' OR document.category <> exclude_category)
    AND (NOT scoped OR document.id = ANY(documents))
    AND (NOT excluding OR document.id <> ALL(excluded))
"""
DROP = """
DROP FUNCTION ingestion_is_searched(
    ingestion_document, boolean, date, text, text, boolean, bigint[], boolean, bigint[]
)
"""


class Migration(migrations.Migration):

    dependencies = [("ingestion", "0025_plain_help_texts")]

    operations = [migrations.RunSQL([IS_SEARCHED], [DROP])]
