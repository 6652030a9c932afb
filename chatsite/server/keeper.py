"""Watches over the embedded PostgreSQL, which is not a child of `up`: other commands may have started it."""

from chatsite.server.embedded_postgres import Cluster

from .processes import report


class Keeper:
    """Starts the embedded server again when it has died; of another database it knows nothing."""

    def __init__(self, cluster: Cluster | None) -> None:
        self._cluster = cluster
        self._seen_dead = False

    def tend(self) -> None:
        """Look once. One look without a server is forgiven: it may be restarting at somebody's wish."""
        if self._cluster is None or self._cluster.alive():
            self._seen_dead = False
        elif not self._seen_dead:
            self._seen_dead = True
        elif self._cluster.revive():
            self._seen_dead = False
            report("The database server ended; it was started again.")
