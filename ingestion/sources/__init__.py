"""Folders as sources: a tree of files mirrored as documents."""
