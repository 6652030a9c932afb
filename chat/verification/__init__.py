"""Whether the sources that an answer cites say what its statements say. Pure, and linear in both texts.

All of it works on foreign text and takes CPU, so callers run it in a thread.
"""

from .verdicts import verify, verify_anew

__all__ = ["verify", "verify_anew"]
