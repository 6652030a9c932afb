"""Selects the table rows that a question asks for, and quotes them as tables."""
