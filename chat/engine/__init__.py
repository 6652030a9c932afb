"""One run, from a question to its events: search under rights, prompt, model, verified citations.

Knows no request and no socket: whoever is given the events decides what becomes of them.
"""

from .answering import answer
from .run import AcceptedRun, Speaker

__all__ = ["AcceptedRun", "Speaker", "answer"]
