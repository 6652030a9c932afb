"""Operates the site: its address, database, static files, processes, diagnosis and backups."""
