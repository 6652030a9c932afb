"""Readers that turn files into sections of text.

All modules but `process` run in a child process without Django: a hostile file can harm only that child,
whose memory, time and output are limited.
"""
