from django.db import migrations

# Who may read, said once: the policy below, the statements in ingestion/sql and chat/runs/sql, the models'
# `visible_to` and `explain_access` all go by this function. LANGUAGE sql, STABLE and one SELECT, so that the
# planner puts its body in place of the call; an argument that is a subquery would prevent that.
# Arrays and subqueries keep each part a look-up in an index that is made once in a statement.
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

# The words of a question as each of these languages stems them. A stop word has no query (no nodes), and what one
# of the languages calls a stop word is not sought where the language is unknown. A word that is sought otherwise
# has a query of its own beside.
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
# As it was in 0007.
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
    """The version before keeps its own statements, which say the same."""

    dependencies = [
        ("accounts", "0003_identity_and_guests"),
        ("ingestion", "0011_document_identity"),
    ]

    operations = [
        migrations.RunSQL([READABLE_ENTRIES], ["DROP FUNCTION ingestion_readable_entries"]),
        migrations.RunSQL([QUESTION_WORDS], ["DROP FUNCTION ingestion_question_words"]),
        migrations.RunSQL([POLICY], [FORMER_POLICY]),
    ]
