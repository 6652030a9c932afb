"""Restarts the embedded PostgreSQL, which another command than `up` may have started."""

from chatsite.server.embedded_postgres import Cluster

from .processes import report


class DatabaseSupervisor:
    """Restarts the embedded server after it has died; without a cluster it does nothing."""

    def __init__(self, cluster: Cluster | None) -> None:
        self._cluster = cluster
        self._seen_dead = False

    def check(self) -> None:
        """Restart the server if it is missing at two checks in a row: once may be a deliberate restart."""
        if self._cluster is None or self._cluster.alive():
            self._seen_dead = False
        elif not self._seen_dead:
            self._seen_dead = True
        elif self._cluster.restart():
            self._seen_dead = False
            report("The database server ended; it was started again.")
