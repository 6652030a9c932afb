"""Readers of office files.

These are Word, spreadsheets, presentations, OpenDocument, rich text, and old formats.
"""
