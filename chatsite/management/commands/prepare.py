"""`manage.py prepare`: migrates the database before several machines start or are upgraded."""

import sys
from typing import Any

from django.core.management.base import BaseCommand

from chat.persons.erasure import erase_returned
from chatsite.server import database_setup
from chatsite.server.refusal import StartRefused


class Command(BaseCommand):
    help = "Check the database and migrate it as `up` does: one at a time, without the limits of a request."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with database_setup.start_lock(database_setup.parameters()):
                database_setup.migrate()
                for line in erase_returned():
                    self.stdout.write(line)
        except StartRefused as error:
            sys.exit(str(error))
        self.stdout.write("The database is ready.")
