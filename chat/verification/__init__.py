"""Checks whether the sources that an answer cites support its statements.

The functions have no side effects, except that :func:`verify_or_log` logs errors. They take time linear in
the lengths of the answer and its sources. They process untrusted text and use CPU, so callers run them in a
thread.
"""

from .verdicts import verify, verify_anew, verify_or_log

__all__ = ["verify", "verify_anew", "verify_or_log"]
