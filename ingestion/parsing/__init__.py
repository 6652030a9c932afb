"""Readers that turn files into sections of text.

All modules except `process` run in a child process without Django, so that a hostile file can only harm that
child, whose memory, time and output are limited.
"""
