"""Which changes of models need a migration: those that concern the database.

Django would also record every text of the admin, so that nearly half of all operations would change nothing
in the database. On an empty database, each of them would take as long as one that does.
"""

from typing import Any

from django.db import models
from django.db.migrations.autodetector import MigrationAutodetector

# Arguments of fields that only forms, the admin and validation read. Django itself ignores them when it
# changes a column (`Field.non_db_attrs`).
TEXTS = frozenset({"choices", "help_text", "verbose_name"})


class SchemaAutodetector(MigrationAutodetector):
    """Ignores the texts of fields."""

    def deep_deconstruct(self, obj: Any) -> Any:
        found = super().deep_deconstruct(obj)
        if not isinstance(obj, models.Field):
            return found
        path, arguments, options = found
        return path, arguments, {name: value for name, value in options.items() if name not in TEXTS}
