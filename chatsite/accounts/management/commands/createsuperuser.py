"""`manage.py createsuperuser`: Django's command, with one line if there is no database to use."""

from typing import Any

from django.contrib.auth.management.commands import createsuperuser

from chatsite.db.migration_state import demand_migrations


class Command(createsuperuser.Command):
    requires_migrations_checks = False  # handle() demands the migrations

    def handle(self, *args: Any, **options: Any) -> None:
        demand_migrations()
        super().handle(*args, **options)
