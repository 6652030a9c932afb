"""The glossary: a site's terms with their meanings, and words in documents for everyday words."""
