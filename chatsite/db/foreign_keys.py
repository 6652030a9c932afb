"""Foreign keys with an ON DELETE action in PostgreSQL itself, for migrations.

While machines are upgraded one after the other, the previous version deletes rows without knowing newer
tables that refer to them. With Django's own constraints, these deletions would fail.
"""

from collections.abc import Iterable

_REPLACE = """
DO $$
DECLARE present record;
BEGIN
    SELECT key.conname AS name, key.confrelid::regclass AS target, other.attname AS identifier
    INTO STRICT present
    FROM pg_constraint AS key
    JOIN pg_attribute AS own ON own.attrelid = key.conrelid AND own.attnum = key.conkey[1]
    JOIN pg_attribute AS other ON other.attrelid = key.confrelid AND other.attnum = key.confkey[1]
    WHERE key.contype = 'f' AND key.conrelid = '{table}'::regclass AND own.attname = '{column}';
    EXECUTE format(
        'ALTER TABLE {table} DROP CONSTRAINT %1$I, ADD CONSTRAINT %1$I FOREIGN KEY ({column})'
        ' REFERENCES %2$s (%3$I) ON DELETE {action} DEFERRABLE INITIALLY DEFERRED NOT VALID',
        present.name, present.target, present.identifier
    );
END $$
"""
_VALIDATE = """
DO $$
DECLARE name text;
BEGIN
    SELECT key.conname INTO STRICT name
    FROM pg_constraint AS key
    JOIN pg_attribute AS own ON own.attrelid = key.conrelid AND own.attnum = key.conkey[1]
    WHERE key.contype = 'f' AND key.conrelid = '{table}'::regclass AND own.attname = '{column}';
    EXECUTE format('ALTER TABLE {table} VALIDATE CONSTRAINT %I', name);
END $$
"""


def act_on_delete(action: str, columns: Iterable[str]) -> list[str]:
    """Statements for RunSQL that give foreign keys the ON DELETE `action` CASCADE or SET NULL.

    `columns` are written as "table.column". Run the statements in a migration that is not atomic, so that
    existing rows are validated without blocking writers.
    """
    statements = []
    for column in columns:
        table, _, name = column.partition(".")
        statements += [each.format(table=table, column=name, action=action) for each in (_REPLACE, _VALIDATE)]
    return statements
