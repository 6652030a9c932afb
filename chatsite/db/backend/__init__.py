"""Django's backend for PostgreSQL, with the reader of row-level security.

The reader is set with each statement.
"""
