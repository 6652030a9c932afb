"""System checks of the configuration: settings that only make sense together."""

import re
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import Error, Warning
from django.db import connections

from chatsite import environment
from chatsite.accounts.oidc.provider import is_safe
from chatsite.postgresql.role import unlocked_role

ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9a-f:]+\](:[0-9]{1,5})?")


class Tags:
    """Names to run these checks by."""

    chatsite = "chatsite"


def check_model_settings(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[Error]:
    """A language model, and an embedding model, need their settings whole."""
    endpoint = bool(settings.OPENAI_API_KEY or settings.OPENAI_BASE_URL)
    problems = []
    if endpoint and not (settings.CHAT_MODEL or settings.EMBEDDING_MODEL):
        name = "OPENAI_API_KEY" if settings.OPENAI_API_KEY else "OPENAI_BASE_URL"
        problems.append(("E001", f"{name} is set, but CHAT_MODEL is not: set both, or neither."))
    if settings.CHAT_MODEL and not endpoint:
        problems.append(
            ("E002", "CHAT_MODEL is set, but neither OPENAI_API_KEY nor OPENAI_BASE_URL: set one of them.")
        )
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
    """A sign-in provider needs its settings whole, and addresses that nobody can listen in on."""
    problems = []
    if settings.OIDC_ISSUER and not settings.OIDC_AUDIENCE:
        problems.append(("E011", "OIDC_ISSUER is set, but OIDC_AUDIENCE is not: set both, or neither."))
    if settings.OIDC_AUDIENCE and not settings.OIDC_ISSUER:
        problems.append(("E012", "OIDC_AUDIENCE is set, but OIDC_ISSUER is not: set both, or neither."))
    for name in ("OIDC_ISSUER", "OIDC_DISCOVERY_URL", "OIDC_JWKS_URL"):
        if getattr(settings, name) and not is_safe(getattr(settings, name)):
            problems.append(("E013", f"{name} must be an address that starts with https://."))
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
    """The way past a pooler needs a pooler."""
    if environment.text("DATABASE_DIRECT_URL") and not environment.text("DATABASE_URL"):
        message = "DATABASE_DIRECT_URL is set, but DATABASE_URL is not: set both, or DATABASE_URL alone."
        return [Error(message, id="chatsite.E031")]
    return []


def check_storage_settings(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[Error]:
    """A bucket needs its name, and the packages that talk to it."""
    if settings.STORAGE != "S3":
        return []
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


def check_database_role(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[Warning]:
    """Row-level security must bind the site's own role. Asks the databases that are named, and no other."""
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
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)
