"""Django's backend for PostgreSQL, which sets the reader for row-level security.

Each statement runs for the reader in chatsite.db.threads.
"""
