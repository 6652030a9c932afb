"""`manage.py export_person USER FILE`: write all data of a person to a zip file."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from chat.persons.person_export import export
from chatsite.accounts.models import User
from chatsite.db.migration_state import demand_migrations


class Command(BaseCommand):
    help = "Write all data of a person to a zip file. The audit log records the export."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", metavar="USER", help="The account's user name.")
        parser.add_argument("file", metavar="FILE", type=Path, help="A file that does not exist yet.")

    def handle(self, *args: Any, **options: Any) -> None:
        demand_migrations()
        person = User.objects.filter(username=options["user"].replace("\0", "")).first()
        if person is None:
            raise CommandError(f"There is no account named “{options['user']}”.")
        try:
            export(person, options["file"], actor=None)
        except OSError as fault:
            raise CommandError(f"The data could not be exported: {fault}") from None
        self.stdout.write(f"Exported to {options['file']}.")
