"""`manage.py config`: every setting with its value and origin, without secrets."""

import re
from argparse import ArgumentParser
from typing import Any
from urllib.parse import urlsplit

from django.core.management.base import BaseCommand
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from chatsite import environment

SECRET = re.compile(r"_KEY$|SECRET|PASSWORD|TOKEN$")
DATABASES = frozenset({"DATABASE_URL", "DATABASE_DIRECT_URL"})
# The user of a Sentry address is its key, and addresses of webhooks often have a token in the path.
KEYS_IN_PATHS = frozenset({"SENTRY_DSN", "CHATSITE_AUDIT_WEBHOOK"})
HIDDEN = "***"


class Command(BaseCommand):
    help = "Show every setting, its value and its origin; secrets are not shown."
    requires_system_checks = []  # the command is for finding configuration errors

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--given", action="store_true", help="Only the settings that the environment sets."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        environment.text("HOST", "127.0.0.1")  # settings.py does not read HOST and PORT: add them
        environment.integer("PORT", 8000)
        width = max(map(len, environment.variables))
        for name, default in sorted(environment.variables.items()):
            given, source = environment.given(name)
            if given or not options["given"]:
                value = shown(name, given) if given else str(default) or "–"
                self.stdout.write(f"{name:<{width}}  {source:<11}  {value}")


def shown(name: str, value: str) -> str:
    """The value without secrets."""
    if name in DATABASES:
        try:
            parts = conninfo_to_dict(value)
        except ProgrammingError:
            return f"{HIDDEN} (it cannot be read)"
        hidden = {part: HIDDEN for part in parts if SECRET.search(part.upper())}
        return make_conninfo("", **{**parts, **hidden})
    if SECRET.search(name):
        return HIDDEN
    if "://" not in value:
        return value
    return ",".join(_shown_address(address, only_host=name in KEYS_IN_PATHS) for address in value.split(","))


def _shown_address(address: str, *, only_host: bool) -> str:
    """A URL without password and query, which may contain keys; with `only_host`, scheme and host alone."""
    try:
        parts = urlsplit(address)
        has_password = parts.password is not None
    except ValueError:
        return HIDDEN
    host = parts.netloc.rpartition("@")[2]
    if only_host:
        return f"{parts.scheme}://{host}/{HIDDEN}"
    netloc = f"{parts.username}:{HIDDEN}@{host}" if has_password else parts.netloc
    return parts._replace(netloc=netloc, query=HIDDEN if parts.query else "", fragment="").geturl()
