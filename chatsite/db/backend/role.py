"""The database role of the site."""

from django.db.backends.base.base import BaseDatabaseWrapper

UNLOCKED = "SELECT rolname FROM pg_roles WHERE rolname = current_user AND (rolsuper OR rolbypassrls)"


def unlocked_role(connection: BaseDatabaseWrapper) -> str:
    """The name of the site's role if it bypasses row-level security; otherwise empty."""
    with connection.cursor() as cursor:
        cursor.execute(UNLOCKED)
        row = cursor.fetchone()
    return str(row[0]) if row else ""
