"""Evaluates search with questions whose relevant documents or passages are known."""
