"""Starts and stops the site: its address, database, static files and processes."""
