"""Which changes of models need a migration: those that concern the database.

Django would also record the fields' texts for forms and the admin. Nearly half of all operations would then
change nothing in the database, although each takes as long as a real change when an empty database is
migrated.
"""

from typing import Any

from django.db import models
from django.db.migrations.autodetector import MigrationAutodetector

# Arguments of fields that only forms, the admin and validation read. Django ignores them, too, when it
# changes a column (`Field.non_db_attrs`).
TEXTS = frozenset({"choices", "help_text", "verbose_name"})


class SchemaAutodetector(MigrationAutodetector):
    """Ignores the arguments in TEXTS."""

    def deep_deconstruct(self, obj: Any) -> Any:
        found = super().deep_deconstruct(obj)
        if not isinstance(obj, models.Field):
            return found
        path, arguments, options = found
        return path, arguments, {name: value for name, value in options.items() if name not in TEXTS}
