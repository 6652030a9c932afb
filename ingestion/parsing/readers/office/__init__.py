"""Readers of office files: Word, spreadsheets, presentations, OpenDocument, rich text, and old formats."""
