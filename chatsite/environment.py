"""Reads the process environment, with one clear error for each wrong value."""

import os
from collections.abc import Collection, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.core.exceptions import ImproperlyConfigured
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

# Default limit of `number`, mostly for times: enough for any use, and too small to overflow timers.
MAX_NUMBER = 10_000_000.0
MAX_WHOLE = 10**15  # default limit of `integer`, for instance for bytes
TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off"})


# Containers provide secrets as files: the variable NAME_FILE contains the path.
SECRETS = frozenset(
    {
        "CHATSITE_METRICS_TOKEN",
        "CHATSITE_S3_ACCESS_KEY",
        "CHATSITE_S3_SECRET_KEY",
        "CHATSITE_SECRET_KEY",
        "DATABASE_DIRECT_URL",
        "DATABASE_URL",
        "OIDC_CLIENT_SECRET",
        "OPENAI_API_KEY",
        "REDIS_URL",
        "RERANK_API_KEY",
    }
)
FILE = "_FILE"
MAX_SECRET_BYTES = 10_000

variables: dict[str, Any] = {}  # all variables that were read in this process, with their defaults


def given(name: str) -> tuple[str, str]:
    """The value of a variable, and its origin: "environment", "file", or "default" (no value)."""
    value = os.environ.get(name, "").strip()
    path = os.environ.get(name + FILE, "").strip() if name in SECRETS else ""
    if not path:
        return value, "environment" if value else "default"
    if value:
        raise ImproperlyConfigured(f"{name} and {name}{FILE} are both set: remove one.")
    try:
        with Path(path).open(encoding="utf-8") as file:
            value = file.read(MAX_SECRET_BYTES + 1).strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise ImproperlyConfigured(f"{name}{FILE}: {path} cannot be read ({reason}).") from None
    if not value or len(value) > MAX_SECRET_BYTES:
        raise ImproperlyConfigured(f"{name}{FILE}: {path} is {'too long' if value else 'empty'}.")
    return value, "file"


def text(name: str, default: str = "") -> str:
    variables[name] = default
    value, _ = given(name)
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise ImproperlyConfigured(f"{name} must be text in UTF-8.")
    return value or default


def optional_text(name: str, default: str) -> str:
    """Like :func:`text`, but a variable that is set to an empty value gives an empty text."""
    value = text(name) if name in os.environ else text(name, default)
    variables[name] = default
    return value


def flag(name: str, default: bool) -> bool:
    value = text(name).lower()
    variables[name] = int(default)
    if not value:
        return default
    if value in TRUE:
        return True
    if value in FALSE:
        return False
    raise ImproperlyConfigured(f"{name} must be 1 or 0, not {value!r}.")


def number(name: str, default: float, least: float = 0, most: float = MAX_NUMBER) -> float:
    value = text(name)
    variables[name] = default
    if not value:
        return default
    try:
        result = float(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a number, not {value!r}.") from None
    if not result >= least:
        raise ImproperlyConfigured(f"{name} must be at least {least:g}, not {value}.")
    if result > most:
        raise ImproperlyConfigured(f"{name} must be at most {most:.15g}, not {value}.")
    return result


def integer(name: str, default: int, least: int = 0, most: int = MAX_WHOLE) -> int:
    result = number(name, default, least, most)
    if result != int(result):
        raise ImproperlyConfigured(f"{name} must be a whole number, not {text(name)}.")
    return int(result)


def one_of(name: str, default: str, known: Collection[str]) -> str:
    value = text(name, default).upper()
    if value not in known:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(known)}, not {text(name)!r}.")
    return value


def time_zone(name: str, default: str) -> str:
    value = text(name, default)
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        message = f"{name} must be a time zone such as Europe/London, not {value!r}."
        raise ImproperlyConfigured(message) from None
    return value


def words(name: str, default: str = "") -> list[str]:
    """A comma-separated list."""
    return [word for part in text(name, default).split(",") if (word := part.strip())]


def networks(name: str) -> list[IPv4Network | IPv6Network]:
    """A comma-separated list of networks and addresses; an address becomes a network."""
    found = []
    for word in words(name):
        try:
            found.append(ip_network(word))
        except ValueError:
            raise ImproperlyConfigured(
                f"{name}: “{word}” is neither an address such as 10.0.0.5 nor a network such as 10.0.0.0/24."
            ) from None
    return found


def path(name: str, default: Path) -> Path:
    value = text(name)
    variables[name] = default
    try:
        return Path(value).expanduser().resolve() if value else default.resolve()
    except (RuntimeError, OSError):  # an unknown home directory, or a cycle of links
        raise ImproperlyConfigured(f"{name} must be the path of a folder, not {value!r}.") from None


def django_database(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Django's `DATABASES` entry from libpq parameters, most of which go to `OPTIONS`."""
    named = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
    entry: dict[str, Any] = {"ENGINE": "chatsite.db.backend", "OPTIONS": {}}
    for key, value in parameters.items():
        # Empty values go to OPTIONS, too: Django would drop an empty HOST, and libpq would then use PGHOST.
        if key in named and value != "":
            entry[named[key]] = str(value)
        else:
            entry["OPTIONS"][key] = value
    return entry


def database_url(name: str) -> dict[str, Any] | None:
    """libpq parameters from a URL or a key=value string, or None if the variable is not set."""
    value = text(name)
    if not value:
        return None
    try:
        return conninfo_to_dict(value)
    except ProgrammingError:
        # The value contains a password, so the message does not repeat it.
        raise ImproperlyConfigured(f"{name} is not a PostgreSQL connection URL.") from None
