"""The site's own questions with what should be found, asked before and after a change."""
