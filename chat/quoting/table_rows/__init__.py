"""Rows of tables: which are meant, and how they are quoted."""
