"""System checks of the configuration: incomplete, contradictory and invalid settings."""

import os
import re
from collections.abc import Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import Error, Warning, run_checks
from django.db import connections

from chatsite import environment, traces
from chatsite.accounts.oidc.provider import is_safe
from chatsite.db.backend.role import unlocked_role
from ingestion.embedding_folder import FolderError, dimensions, model_name

ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9a-f:]+\](:[0-9]{1,5})?")

HOST = re.compile(r"\.?[a-z0-9_]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9])?)*|\[[0-9a-f:.]+\]")
TRUSTED_ORIGIN = re.compile(rf"https?://(\*\.)?({HOST.pattern})(:[0-9]{{1,5}})?")
EXAMPLE_HOST = "ask.example.org"
LANGUAGES = re.compile(r"[A-Za-z0-9_]+(\+[A-Za-z0-9_]+)*")
LEASE_FLUSHES = 5
MIN_SECRET_CHARACTERS = 32
MIN_TOKEN_CHARACTERS = 16
MIN_SECRET_VARIETY = 5  # distinct characters
PREFIX = "CHATSITE_"
KNOWN_ELSEWHERE = {"CHATSITE_TEST_CLIENTS_FOLDER", "CHATSITE_TEST_ROUNDS"}  # variables that only tests read
SERVICE_LINK = re.compile(
    r"CHATSITE_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)


class Tags:
    """The tag of the checks in this module, except check_database_role."""

    chatsite = "chatsite"


def serious_problems() -> list[str]:
    """The problems that keep the site from starting, as sentences."""
    return [message.msg for message in run_checks(tags=[Tags.chatsite]) if message.is_serious()]


def check_model_settings(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[Error]:
    """Settings of language, embedding and reranking models must be complete and consistent."""
    endpoint = bool(settings.OPENAI_API_KEY or settings.OPENAI_BASE_URL)
    problems = []
    if endpoint and not (settings.CHAT_MODEL or settings.EMBEDDING_MODEL):
        name = "OPENAI_API_KEY" if settings.OPENAI_API_KEY else "OPENAI_BASE_URL"
        problems.append(("E001", f"{name} is set, but CHAT_MODEL is not: set both, or neither."))
    if settings.CHAT_MODEL and not endpoint:
        problems.append(
            ("E002", "CHAT_MODEL is set, but neither OPENAI_API_KEY nor OPENAI_BASE_URL: set one of them.")
        )
    if settings.EMBEDDING_MODEL_DIR and settings.EMBEDDING_MODEL:
        problems.append(("E008", "EMBEDDING_MODEL_DIR and EMBEDDING_MODEL are both set: leave one out."))
    elif settings.EMBEDDING_MODEL_DIR:
        try:  # checks the model without loading its weights
            model_name(settings.EMBEDDING_MODEL_DIR)
            dimensions(settings.EMBEDDING_MODEL_DIR)
        except FolderError as error:
            problems.append(("E009", f"EMBEDDING_MODEL_DIR, {settings.EMBEDDING_MODEL_DIR}: {error}"))
    if settings.EMBEDDING_MODEL and not endpoint:
        problems.append(
            (
                "E003",
                "EMBEDDING_MODEL is set, but neither OPENAI_API_KEY nor OPENAI_BASE_URL: set one of them.",
            )
        )
    if bool(settings.EMBEDDING_MODEL) != bool(environment.text("EMBEDDING_DIMENSIONS")):
        given, missing = "EMBEDDING_MODEL", "EMBEDDING_DIMENSIONS"
        if not settings.EMBEDDING_MODEL:
            given, missing = missing, given
        problems.append(("E004", f"{given} is set, but {missing} is not: set both, or neither."))
    if settings.OPENAI_BASE_URL and not _is_web_address(settings.OPENAI_BASE_URL):
        problems.append(("E005", "OPENAI_BASE_URL must be an address that starts with http:// or https://."))
    if settings.RERANK_MODEL and not settings.RERANK_BASE_URL:
        problems.append(
            ("E006", "RERANK_MODEL is set, but neither RERANK_BASE_URL nor OPENAI_BASE_URL: set one of them.")
        )
    if settings.RERANK_BASE_URL and not _is_web_address(settings.RERANK_BASE_URL):
        problems.append(("E007", "RERANK_BASE_URL must be an address that starts with http:// or https://."))
    return [Error(message, id=f"chatsite.{number}") for number, message in problems]


def check_identity_settings(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[Error]:
    """OIDC needs an issuer, an audience and safe URLs. CORS origins must be valid.

    A safe URL uses HTTPS or is on this machine.
    """
    problems = []
    if settings.OIDC_ISSUER and not settings.OIDC_AUDIENCE:
        problems.append(("E011", "OIDC_ISSUER is set, but OIDC_AUDIENCE is not: set both, or neither."))
    if settings.OIDC_AUDIENCE and not settings.OIDC_ISSUER:
        problems.append(("E012", "OIDC_AUDIENCE is set, but OIDC_ISSUER is not: set both, or neither."))
    for name in ("OIDC_ISSUER", "OIDC_DISCOVERY_URL", "OIDC_JWKS_URL"):
        if getattr(settings, name) and not is_safe(getattr(settings, name)):
            problems.append(("E013", f"{name} must be an address that starts with https://."))
    if settings.OIDC_ISSUER and "openid" not in settings.OIDC_SCOPES.split():
        problems.append(("E015", "OIDC_SCOPES must contain openid, such as “openid profile”."))
    if settings.MCP_AUDIENCE and not settings.OIDC_ISSUER:
        problems.append(("E016", "CHATSITE_MCP_AUDIENCE needs OIDC_ISSUER, which issues the tokens."))
    for origin in settings.CORS_ORIGINS:
        if not ORIGIN.fullmatch(origin):
            problems.append(
                (
                    "E014",
                    f"CHATSITE_CORS_ORIGINS: {origin!r} is not an origin such as https://app.example.org.",
                )
            )
    return [Error(message, id=f"chatsite.{number}") for number, message in problems]


def check_database_settings(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[Error]:
    """DATABASE_DIRECT_URL, which bypasses the pooler of DATABASE_URL, needs DATABASE_URL."""
    if environment.text("DATABASE_DIRECT_URL") and not environment.text("DATABASE_URL"):
        message = "DATABASE_DIRECT_URL is set, but DATABASE_URL is not: set both, or DATABASE_URL alone."
        return [Error(message, id="chatsite.E061")]
    return []


def check_storage_settings(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[Error]:
    """S3 storage needs a bucket and the packages of the extra “s3”; a bucket needs S3 storage."""
    if settings.STORAGE != "S3":
        words = "is set, but CHATSITE_STORAGE is not s3: set both, or neither."
        names = ("S3_BUCKET", "S3_ENDPOINT", "S3_REGION", "S3_ACCESS_KEY", "S3_SECRET_KEY", "S3_PREFIX")
        given = [f"{PREFIX}{name}" for name in names if getattr(settings, name)]
        return [Error(f"{name} {words}", id="chatsite.E024") for name in given]
    problems = []
    if not settings.S3_BUCKET:
        problems.append(("E021", "CHATSITE_STORAGE is s3, but CHATSITE_S3_BUCKET is not set."))
    if settings.S3_ENDPOINT and not _is_web_address(settings.S3_ENDPOINT):
        problems.append(
            ("E022", "CHATSITE_S3_ENDPOINT must be an address that starts with http:// or https://.")
        )
    if not (find_spec("storages") and find_spec("boto3")):
        problems.append(
            ("E023", "CHATSITE_STORAGE is s3, but the extra “s3” is not installed (docs/deploy.md).")
        )
    return [Error(message, id=f"chatsite.{number}") for number, message in problems]


def check_address_settings(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[Error]:
    """Hosts, origins and networks that can never match; invalid REDIS_URL and HOST."""
    wrong = [
        ("E031", "CHATSITE_ALLOWED_HOSTS", settings.ALLOWED_HOSTS, _better_host),
        ("E032", "CHATSITE_TRUSTED_ORIGINS", settings.CSRF_TRUSTED_ORIGINS, _better_origin),
        ("E033", "CHATSITE_TRUSTED_PROXIES", settings.TRUSTED_PROXIES, _better_proxy),
        ("E037", "CHATSITE_METRICS_ADDRESSES", settings.METRICS_ADDRESSES, _better_proxy),
    ]
    problems = [
        (number, f"{name}: write {better} instead of {entry}.")
        for number, name, entries, correct in wrong
        for entry in entries
        if (better := correct(entry))
    ]
    if not settings.ALLOWED_HOSTS:
        problems.append(("E036", "CHATSITE_ALLOWED_HOSTS names no host: write one such as ask.example.org."))
    if settings.REDIS_URL and not _is_redis_address(settings.REDIS_URL):
        # The URL may contain a password, so the message does not repeat it.
        problems.append(("E034", "REDIS_URL must be an address such as redis://127.0.0.1:6379/0."))
    host = environment.text("HOST")
    if "/" in host:
        problems.append(("E035", f"HOST: write an address such as 127.0.0.1 or 0.0.0.0 instead of {host}."))
    return [Error(message, id=f"chatsite.{number}") for number, message in problems]


def check_answer_settings(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[Error]:
    """A lease must outlast a few late journal writes, or runs of live processes would be ended."""
    least = LEASE_FLUSHES * settings.JOURNAL_FLUSH_SECONDS
    if least <= settings.LEASE_SECONDS:
        return []
    message = (
        f"CHATSITE_LEASE_SECONDS must be at least {least:g}, {LEASE_FLUSHES} times"
        f" CHATSITE_JOURNAL_FLUSH_SECONDS, not {settings.LEASE_SECONDS:g}."
    )
    return [Error(message, id="chatsite.E071")]


def check_reading_settings(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[Error]:
    """Languages of text recognition must be written as tesseract's names, joined by “+”."""
    if not settings.OCR_LANGUAGES or LANGUAGES.fullmatch(settings.OCR_LANGUAGES):
        return []
    message = "CHATSITE_OCR_LANGUAGES must be names that tesseract knows, such as eng or eng+deu, or empty."
    return [Error(message, id="chatsite.E081")]


def check_dictionary(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[Error]:
    """A configured dictionary must exist."""
    if not settings.DICTIONARY or Path(settings.DICTIONARY).is_file():
        return []
    return [Error(f"CHATSITE_DICTIONARY, {settings.DICTIONARY}: there is no such file.", id="chatsite.E082")]


def check_secrets(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[Error]:
    """Secrets must not be guessable, and keys of models must be valid in HTTP headers."""
    problems = []
    key: str = settings.SECRET_KEY
    if len(key) < MIN_SECRET_CHARACTERS or len(set(key)) < MIN_SECRET_VARIETY:
        given = bool(environment.text("CHATSITE_SECRET_KEY"))
        name = "CHATSITE_SECRET_KEY" if given else f"The secret key in {settings.DATA_DIR / 'secret_key'}"
        problems.append(
            ("E041", f"{name} is too simple: write at least {MIN_SECRET_CHARACTERS} random characters.")
        )
    if 0 < len(settings.METRICS_TOKEN) < MIN_TOKEN_CHARACTERS:
        words = f"CHATSITE_METRICS_TOKEN is too short: write at least {MIN_TOKEN_CHARACTERS} characters."
        problems.append(("E043", words))
    for name in ("OPENAI_API_KEY", "RERANK_API_KEY"):
        value: str = getattr(settings, name)
        if not (value.isascii() and value.isprintable() and " " not in value):
            problems.append(("E042", f"{name} must consist of visible ASCII characters, without spaces."))
    return [Error(message, id=f"chatsite.{number}") for number, message in problems]


def check_telemetry(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[Error]:
    """URLs for traces and error reports must be valid, and need the packages that send them."""
    asked = {"OTEL_EXPORTER_OTLP_ENDPOINT": settings.TRACES_ENDPOINT, "SENTRY_DSN": settings.SENTRY_DSN}
    words = "needs more packages: install chatsite[telemetry], or remove it."
    missing = [] if traces.INSTALLED else [name for name, address in asked.items() if address]
    problems = [("E052", f"{name} {words}") for name in missing]
    if settings.TRACES_ENDPOINT and not _is_web_address(settings.TRACES_ENDPOINT):
        words = "must be an address that starts with http:// or https://."
        problems.append(("E054", f"OTEL_EXPORTER_OTLP_ENDPOINT {words}"))
    if settings.SENTRY_DSN and not _is_sentry_address(settings.SENTRY_DSN):
        # The address contains a key, so the message does not repeat it.
        problems.append(
            ("E055", "SENTRY_DSN must be an address such as https://KEY@sentry.example.org/PROJECT.")
        )
    return [Error(message, id=f"chatsite.{number}") for number, message in problems]


def check_audit(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[Error]:
    """The destinations of the audit log must be valid."""
    problems = []
    try:
        syslog = urlsplit(settings.AUDIT_SYSLOG)
        is_syslog = syslog.scheme in {"tcp", "udp"} and bool(syslog.hostname) and syslog.port != 0
    except ValueError:  # an invalid port
        is_syslog = False
    if settings.AUDIT_SYSLOG and not is_syslog:
        problems.append(
            "CHATSITE_AUDIT_SYSLOG must be an address like tcp://log.example.org:514, or udp://…."
        )
    if settings.AUDIT_WEBHOOK and not is_safe(settings.AUDIT_WEBHOOK):
        problems.append("CHATSITE_AUDIT_WEBHOOK must be an address that begins with https://.")
    return [Error(message, id="chatsite.E053") for message in problems]


def check_names(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[Error]:
    """Unknown variables with the site's prefix, because a misspelt name would have no effect."""
    files = {name + environment.FILE for name in environment.SECRETS}
    known = environment.variables.keys() | files | KNOWN_ELSEWHERE
    own = [name for name in known if name.startswith(PREFIX)]
    problems = []
    for name in sorted(os.environ):
        if not name.startswith(PREFIX) or name in known:
            continue
        # Kubernetes sets variables in every container for a service whose name begins with “chatsite”.
        is_link = name.endswith("_PORT") and os.environ[name].startswith(("tcp://", "udp://", "sctp://"))
        if is_link or SERVICE_LINK.fullmatch(name):
            continue
        plain = name.removeprefix(PREFIX)
        near = get_close_matches(plain, [one.removeprefix(PREFIX) for one in own], n=1)
        better = plain if plain in known | {"HOST", "PORT"} else PREFIX + near[0] if near else ""
        offer = f"write {better}" if better else "docs/configuration.md lists all"
        problems.append(f"{name} is not a setting of this site: {offer}, or remove it.")
    return [Error(message, id="chatsite.E051") for message in problems]


def _better_host(entry: str) -> str:
    """The corrected value of a host; empty if the given one can match a request."""
    if entry == "*" or HOST.fullmatch(entry.lower()):
        return ""
    if "://" in entry:
        try:
            found = urlsplit(entry).hostname or ""
        except ValueError:
            found = ""
        return f"[{found}]" if ":" in found else found or EXAMPLE_HOST
    if entry.startswith("*."):
        return entry[1:]
    try:
        return f"[{ip_address(entry)}]"
    except ValueError:
        name = entry.partition("/")[0].rpartition(":")[0] or entry.partition("/")[0]
    try:
        name = name.encode("idna").decode()
    except UnicodeError:
        return EXAMPLE_HOST
    return name if HOST.fullmatch(name.lower()) else EXAMPLE_HOST


def _better_origin(entry: str) -> str:
    if TRUSTED_ORIGIN.fullmatch(entry):
        return ""
    address = entry.lower() if "://" in entry else f"https://{entry.lower()}"
    origin = "/".join(address.split("/")[:3])
    return origin if TRUSTED_ORIGIN.fullmatch(origin) else f"https://{EXAMPLE_HOST}"


def _better_proxy(entry: str) -> str:
    try:
        ip_network(entry)
    except ValueError:
        try:
            return str(ip_network(entry, strict=False))
        except ValueError:
            return "an address such as 10.0.0.5 or a network such as 10.0.0.0/24"
    return ""


def _is_redis_address(value: str) -> bool:
    try:
        parts = urlsplit(value)
        if parts.scheme == "unix":
            return parts.path.startswith("/")
        database = parts.path.strip("/")
        number = parts.port is None or parts.port > 0
    except ValueError:
        return False
    return (
        parts.scheme in {"redis", "rediss"}
        and bool(parts.hostname)
        and number
        and (not database or database.isdecimal())
    )


def check_database_role(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[Warning]:
    """Row-level security must apply to the site's role. Queries only the given databases."""
    roles = [unlocked_role(connections[alias]) for alias in databases or ()]
    return [
        Warning(
            f"The database role {role} is a superuser, or may bypass row-level security: a query that "
            "forgets who asks would show documents to anyone. Give the site a role without either.",
            id="chatsite.W001",
        )
        for role in roles
        if role
    ]


def _is_web_address(value: str) -> bool:
    try:
        parts = urlsplit(value)
        _ = parts.port  # raises for an invalid port
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and not re.search(r"\s", value)


def _is_sentry_address(value: str) -> bool:
    """Whether a web address has a key, and the number of a project at its end."""
    if not _is_web_address(value):
        return False
    parts = urlsplit(value)
    return bool(parts.username) and parts.path.rpartition("/")[2].isdecimal()
