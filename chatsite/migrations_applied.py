"""Whether the database has every migration that this code has.

Names are compared, without importing the migrations: `/readyz` and every start ask this.
"""

import pkgutil

from django.apps import apps
from django.db import connection


def known_migrations() -> frozenset[tuple[str, str]]:
    """(app label, name) of every migration in the code."""
    return frozenset(
        (application.label, module.name)
        for application in apps.get_app_configs()
        for module in pkgutil.iter_modules([f"{application.path}/migrations"])
        if not module.name.startswith(("_", "~"))
    )


def unapplied_migrations() -> frozenset[tuple[str, str]]:
    """Those of the code that the database lacks; all of them in an empty database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('django_migrations')")
        if cursor.fetchone() == (None,):
            return known_migrations()
        cursor.execute("SELECT app, name FROM django_migrations")
        return known_migrations() - frozenset(cursor.fetchall())
