"""Django's backend for PostgreSQL, which sets the reader for row-level security.

The reader is set with each statement.
"""
