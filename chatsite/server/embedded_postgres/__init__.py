"""The PostgreSQL that starts with the site if DATABASE_URL is not set.

The settings and the command line import this package before Django is set up, so it must not use Django's
settings or apps.
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
