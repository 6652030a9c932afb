"""`manage.py retention [--dry-run]`: delete data that is older than the rules in the admin allow."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from chat.retention_rules import apply
from chatsite.db.migration_state import demand_migrations


class Command(BaseCommand):
    help = "Delete data that is older than the retention rules allow, as the worker does each night."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="Only say how much would be deleted.")

    def handle(self, *args: Any, **options: Any) -> None:
        demand_migrations()
        due = apply(dry_run=options["dry_run"])
        self.stdout.write(f"{'Would delete' if options['dry_run'] else 'Deleted'}: {due}.")
