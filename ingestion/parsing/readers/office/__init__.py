"""Readers of Word files, spreadsheets, presentations, OpenDocument, rich text, and old formats."""
