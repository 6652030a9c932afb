from django.db import migrations

# Whether a document is one that a search looks at: it has been read in, is not past its last day, may be read, and
# lies within what the search was narrowed to. `may_read` is the rule of ingestion_readable_entries, asked once for a
# whole statement. One expression without a subquery and without SET, so that the planner puts it in place of the call
# and knows the values of the filters.
IS_SEARCHED = """
CREATE FUNCTION ingestion_is_searched(
    document ingestion_document,
    may_read boolean,
    today date,
    include_category text,
    exclude_category text,
    scoped boolean,
    documents bigint[]
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
"""
DROP = "DROP FUNCTION ingestion_is_searched(ingestion_document, boolean, date, text, text, boolean, bigint[])"


class Migration(migrations.Migration):

    dependencies = [("ingestion", "0023_words_sample")]

    operations = [migrations.RunSQL([IS_SEARCHED], [DROP])]
