"""Django's backend for PostgreSQL, which sets the reader of row-level security with each statement."""
