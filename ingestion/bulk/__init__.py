"""Bulk changes of documents, which are selected in the admin.

A worker changes each of them and stores its result.
"""
