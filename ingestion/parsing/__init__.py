"""Files in, sections of text out.

Everything here but `process` runs in a child process that knows no Django: a hostile file can only
hurt the child, whose memory, time and output are limited.
"""
