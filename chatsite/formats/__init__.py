"""Formats of dates and times, with which Django's own pages show them like the portal."""
