"""Figures of how the site is used.

The worker counts them, and the first page of the admin shows them.
"""
