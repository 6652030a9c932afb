"""Pytest plugin, loaded before the settings: tests use a PostgreSQL of their own."""

import atexit
import os
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

os.environ.setdefault("CHATSITE_DATA_DIR", str(Path(__file__).resolve().parent.parent.parent / ".data-test"))
os.environ.setdefault("CHATSITE_DEBUG", "0")
for name in (
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "CHAT_MODEL",
    "EMBEDDING_MODEL",
    "EMBEDDING_DIMENSIONS",
    "EMBEDDING_MODEL_DIR",
    "REDIS_URL",
    "RERANK_MODEL",
    "RERANK_BASE_URL",
    "RERANK_API_KEY",
    "OIDC_ISSUER",
    "OIDC_AUDIENCE",
    "CHATSITE_CORS_ORIGINS",
    "CHATSITE_LOGIN_REQUIRED",
):
    os.environ.pop(name, None)

# WhiteNoise warns where it is missing.
Path(os.environ["CHATSITE_DATA_DIR"], "static").mkdir(parents=True, exist_ok=True)

from chatsite.db.threads import read_everything_by_default  # noqa: E402
from chatsite.server.embedded_postgres import Cluster  # noqa: E402

read_everything_by_default()  # a test makes what its people may not read; requests have their callers
if not os.environ.get("DATABASE_URL"):
    cluster = Cluster(Path(os.environ["CHATSITE_DATA_DIR"]))
    cluster.start()
    atexit.register(cluster.stop)


@pytest.fixture(autouse=True)
def unhashed_static_files(settings: Any) -> None:
    """Tests render templates without collecting static files first."""
    settings.STORAGES = settings.STORAGES | {
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    }


def pytest_configure() -> None:
    """Passwords of tests need no slow hash; the real servers of tests have their own settings."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
