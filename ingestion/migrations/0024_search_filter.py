from django.db import migrations

# Whether a search covers a document: it has been read, its last day is not past, the reader may read it, and
# it is in the scope of the search. `may_read` is the result of ingestion_readable_entries, computed once for
# a statement. One expression without a subquery and without SET, so that the planner inlines the function and
# knows the values of the filters.
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
