"""A whole site in one file: database, files, signing key, and the sums by which a copy is checked."""
