"""Django's backend for PostgreSQL, which also tells the server whom each statement is for."""
