"""Readers that turn files into sections of text.

Files are read in child processes (see `process`), in which Django is not set up. A hostile file can thus only
harm its child, whose memory, time and output are limited.
"""
