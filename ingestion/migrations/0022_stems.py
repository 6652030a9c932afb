from django.db import migrations

# Like the function of migration 0012, which the previous version still calls, with stems for languages that
# PostgreSQL cannot stem: `stems` is an object with an array for each language, in the order of `words`; an
# empty stem means a stop word.
QUESTION_WORDS = """
CREATE FUNCTION ingestion_question_words(words text[], otherwise text[], stems jsonb, languages text[])
RETURNS TABLE (number bigint, language text, query tsquery, operands integer)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 20
BEGIN ATOMIC
    WITH parsed AS MATERIALIZED (
        SELECT
            word.number,
            known.language,
            known.configuration = 'simple'::regconfig AND NOT stems ? known.language AS is_unknown,
            plainto_tsquery(
                known.configuration, coalesce(stems -> known.language ->> (word.number - 1)::integer, word.text)
            ) AS query,
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
            parsed.is_unknown
            AND EXISTS (
                SELECT 1 FROM parsed AS other WHERE other.number = parsed.number AND numnode(other.query) = 0
            )
        );
END
"""


class Migration(migrations.Migration):

    dependencies = [("ingestion", "0021_parts")]

    operations = [
        migrations.RunSQL(
            [QUESTION_WORDS], ["DROP FUNCTION ingestion_question_words(text[], text[], jsonb, text[])"]
        ),
    ]
