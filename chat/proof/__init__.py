"""The proof: the site's own test questions with expected documents, run before and after a change."""
