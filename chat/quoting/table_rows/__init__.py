"""Rows of tables: which ones a question means, and how they are quoted."""
