from django.db import migrations

# The only definition of who may read: the policy below, the statements in ingestion/sql and chat/runs/sql,
# the models' `visible_to`, and `explain_access` all use this function. It is LANGUAGE sql, STABLE and one
# SELECT, so that the planner inlines it; an argument that is a subquery would prevent that. Because of the
# arrays and subqueries, each part is one index look-up in a statement.
READABLE_ENTRIES = """
CREATE FUNCTION ingestion_readable_entries(reader bigint, even_if_disabled boolean DEFAULT false)
RETURNS TABLE (access_list_id bigint, entry_id bigint, user_id bigint, group_id integer)
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    -- As themselves.
    SELECT entry.access_list_id, entry.id, entry.user_id, entry.group_id
    FROM ingestion_accessentry AS entry
    WHERE
        entry.user_id = (SELECT reader)
        AND (SELECT account.is_active OR even_if_disabled FROM accounts_user AS account WHERE account.id = reader)
    UNION ALL
    -- Through a group that they are in now.
    SELECT entry.access_list_id, entry.id, entry.user_id, entry.group_id
    FROM ingestion_accessentry AS entry
    WHERE
        entry.group_id = ANY(
            ARRAY(SELECT membership.group_id FROM accounts_user_groups AS membership WHERE membership.user_id = reader)
        )
        AND (SELECT account.is_active OR even_if_disabled FROM accounts_user AS account WHERE account.id = reader)
    UNION ALL
    -- As one of everyone; a guest only where guests are meant too.
    SELECT entry.access_list_id, entry.id, entry.user_id, entry.group_id
    FROM ingestion_accessentry AS entry
    WHERE
        entry.user_id IS NULL
        AND entry.group_id IS NULL
        AND (SELECT account.is_active OR even_if_disabled FROM accounts_user AS account WHERE account.id = reader)
        AND (
            entry.guests
            OR (SELECT account.guest_until IS NULL FROM accounts_user AS account WHERE account.id = reader)
        );
END
"""

# The words of a question, stemmed in each of these languages. A stop word has no query (no nodes); if it is a
# stop word in one of the languages, it is not searched for in documents of unknown language. Alternative
# forms of a word have a separate query.
QUESTION_WORDS = """
CREATE FUNCTION ingestion_question_words(words text[], otherwise text[], languages text[])
RETURNS TABLE (number bigint, language text, query tsquery, operands integer)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 20
BEGIN ATOMIC
    WITH parsed AS MATERIALIZED (
        SELECT
            word.number,
            known.language,
            known.configuration,
            plainto_tsquery(known.configuration, word.text) AS query,
            to_tsquery(known.configuration, nullif(word.otherwise, '')) AS otherwise
        FROM unnest(words, otherwise) WITH ORDINALITY AS word (text, otherwise, number)
        CROSS JOIN (
            SELECT each.language, coalesce(configuration.oid, 'simple'::regconfig)::regconfig AS configuration
            FROM unnest(languages) AS each (language)
            LEFT JOIN pg_ts_config AS configuration
                ON configuration.cfgname = each.language
                AND configuration.cfgnamespace = 'pg_catalog'::regnamespace
            WHERE each.language IS NOT NULL
        ) AS known
    )

    SELECT
        parsed.number,
        parsed.language,
        CASE WHEN numnode(parsed.otherwise) > 0 THEN parsed.otherwise ELSE parsed.query END,
        CASE WHEN numnode(parsed.otherwise) > 0 THEN (numnode(parsed.otherwise) + 1) / 2 ELSE 1 END
    FROM parsed
    WHERE
        numnode(parsed.query) > 0
        AND NOT (
            parsed.configuration = 'simple'::regconfig
            AND EXISTS (
                SELECT 1 FROM parsed AS other WHERE other.number = parsed.number AND numnode(other.query) = 0
            )
        );
END
"""

EVERYTHING = "(SELECT current_setting('chatsite.reader', true)) = 'everything'"
READER = """
    CASE
        WHEN current_setting('chatsite.reader', true) ~ '^[0-9]{1,18}$'
        THEN current_setting('chatsite.reader', true)::bigint
    END
"""
POLICY = f"""
ALTER POLICY readers ON ingestion_document USING (
    {EVERYTHING}
    OR access_list_id IN (SELECT mine.access_list_id FROM ingestion_readable_entries({READER}) AS mine)
)
"""
# The expression in migration 0007.
FORMER_READER = f"(SELECT {READER})"
FORMER_POLICY = f"""
ALTER POLICY readers ON ingestion_document USING (
    {EVERYTHING}
    OR access_list_id IN (
        SELECT entry.access_list_id
        FROM ingestion_accessentry AS entry
        WHERE
            entry.user_id = {FORMER_READER}
            AND (SELECT reader.is_active FROM accounts_user AS reader WHERE reader.id = {FORMER_READER})
        UNION ALL
        SELECT entry.access_list_id
        FROM ingestion_accessentry AS entry
        WHERE
            entry.group_id = ANY(ARRAY(
                SELECT membership.group_id
                FROM accounts_user_groups AS membership
                WHERE membership.user_id = {FORMER_READER}
            ))
            AND (SELECT reader.is_active FROM accounts_user AS reader WHERE reader.id = {FORMER_READER})
        UNION ALL
        SELECT entry.access_list_id
        FROM ingestion_accessentry AS entry
        WHERE
            entry.user_id IS NULL
            AND entry.group_id IS NULL
            AND (SELECT reader.is_active FROM accounts_user AS reader WHERE reader.id = {FORMER_READER})
            AND (
                entry.guests
                OR (SELECT reader.guest_until IS NULL FROM accounts_user AS reader WHERE reader.id = {FORMER_READER})
            )
    )
)
"""


class Migration(migrations.Migration):
    """The previous version keeps its own statements, which have the same effect."""

    dependencies = [
        ("accounts", "0003_identity_and_guests"),
        ("ingestion", "0011_document_identity"),
    ]

    operations = [
        migrations.RunSQL([READABLE_ENTRIES], ["DROP FUNCTION ingestion_readable_entries"]),
        migrations.RunSQL([QUESTION_WORDS], ["DROP FUNCTION ingestion_question_words"]),
        migrations.RunSQL([POLICY], [FORMER_POLICY]),
    ]
