"""Backup and restore of a site in one file: database, files, signing key and checksums."""
