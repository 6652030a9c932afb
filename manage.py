#!/usr/bin/env python
"""Django's command line; without DATABASE_URL it brings the embedded PostgreSQL with it."""

import os
import signal
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

from chatsite.db.threads import read_everything_by_default
from chatsite.server.embedded_postgres import database_for

INTERRUPTED = 130


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
    read_everything_by_default()
    # Both end a command through its `finally` blocks, which stop what it started; SIGINT is set because
    # shells start background jobs with it ignored.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    try:
        with database_for(sys.argv):
            execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(0 if sys.argv[1:2] in (["up"], ["work"]) else INTERRUPTED)


if __name__ == "__main__":
    main()
