"""Test databases, with which threads and event loops of tests may still have sessions when dropped."""

from django.db.backends.postgresql import creation


class DatabaseCreation(creation.DatabaseCreation):
    """Django's own otherwise."""

    def _destroy_test_db(self, test_database_name: str, verbosity: int) -> None:
        self.connection.close_pool()
        with self._nodb_cursor() as cursor:  # type: ignore[attr-defined]  # not in the stubs
            cursor.execute(f"DROP DATABASE {self.connection.ops.quote_name(test_database_name)} WITH (FORCE)")
