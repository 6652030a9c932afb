"""The PostgreSQL that starts with the site if DATABASE_URL is not set.

Settings and manage.py import this package before Django is ready, so it must not import Django.
"""

from .cluster import (
    Cluster,
    EmbeddedDatabaseError,
)
from .commands import (
    database_for,
    running,
)
from .paths import (
    connection_parameters,
    open_lock,
    secret_key,
    write_secret,
)

__all__ = [
    "Cluster",
    "EmbeddedDatabaseError",
    "connection_parameters",
    "database_for",
    "open_lock",
    "running",
    "secret_key",
    "write_secret",
]
