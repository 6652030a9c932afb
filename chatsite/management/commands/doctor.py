"""`manage.py doctor`: checks this site and lists the results in plain words."""

import sys
from typing import Any

from django.core.management.base import BaseCommand

from chatsite.server.diagnosis import findings


class Command(BaseCommand):
    help = (
        "List the problems of this site and what to do about each. Changes nothing; exits with status 1 if"
        " there is a problem."
    )
    requires_system_checks = []  # the command runs the checks itself and reports them like the other findings

    def handle(self, *args: Any, **options: Any) -> None:
        wrong = 0
        for finding in findings():
            self.stdout.write(f"{finding.level:<5}  {finding.words}")
            wrong += finding.level == "wrong"
        self.stdout.write("\nNothing is wrong." if not wrong else f"\nProblems found: {wrong}.")
        if wrong:
            sys.exit(1)
