"""Test databases that can be dropped while threads or event loops of tests have sessions."""

from django.db.backends.postgresql import creation

from chatsite.db.dropping import drop_database
from chatsite.dependency_internals import maintenance_cursor


class DatabaseCreation(creation.DatabaseCreation):
    """Django's database creation, with forced dropping."""

    def _destroy_test_db(self, test_database_name: str, verbosity: int) -> None:
        self.connection.close_pool()
        with maintenance_cursor(self) as cursor:
            drop_database(cursor.connection, test_database_name)
