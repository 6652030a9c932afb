"""Whether the database has every migration that this code has.

Compares only names, and imports no migrations, because `/readyz` and every start make this check.
"""

import pkgutil

from django.apps import apps
from django.core.management.base import CommandError
from django.db import OperationalError, connection

from .availability import first_line


def known_migrations() -> frozenset[tuple[str, str]]:
    """(app label, name) of every migration in the code."""
    return frozenset(
        (application.label, module.name)
        for application in apps.get_app_configs()
        for module in pkgutil.iter_modules([f"{application.path}/migrations"])
        if not module.name.startswith(("_", "~"))
    )


def unapplied_migrations() -> frozenset[tuple[str, str]]:
    """Migrations of the code that the database lacks; all of them in an empty database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('django_migrations')")
        if cursor.fetchone() == (None,):
            return known_migrations()
        cursor.execute("SELECT app, name FROM django_migrations")
        return known_migrations() - frozenset(cursor.fetchall())


def demand_migrations() -> None:
    """Raise CommandError unless the database is fully migrated.

    Commands that use stored data call this first.
    """
    try:
        missing = unapplied_migrations()
    except OperationalError as error:
        raise CommandError(f"The database cannot be reached: {first_line(error)}") from error
    if missing:
        raise CommandError("The database is not migrated to this version: start the site first.")
