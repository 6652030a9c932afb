"""Bulk changes of documents that are selected in the admin.

A worker changes one document after the other, and stores the outcome for each.
"""
