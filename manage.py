#!/usr/bin/env python
"""Django's command line; without DATABASE_URL it brings the embedded PostgreSQL with it."""

import os
import sys

from django.core.management import execute_from_command_line

from chatsite.embedded import database_for


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
    with database_for(sys.argv):
        execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
