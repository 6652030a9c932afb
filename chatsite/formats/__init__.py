"""Formats of dates and times, so that Django's own pages show them as the portal does."""
