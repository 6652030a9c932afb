"""The glossary of a site.

It has terms with their meanings, and words that documents use for everyday words.
"""
