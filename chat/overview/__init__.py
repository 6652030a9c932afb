"""Figures of how the site is used: counted by the worker, shown on the first page of the admin."""
