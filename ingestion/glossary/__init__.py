"""A site's glossary: terms with meanings, and words that documents use for everyday words."""
