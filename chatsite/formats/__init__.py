"""Formats of dates and times, so that Django's own pages show them like the portal."""
