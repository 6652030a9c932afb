"""The PostgreSQL that starts with the site when no DATABASE_URL is set.

This package is imported by the settings and by manage.py before Django is ready, so it knows no Django.
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
