"""One run, from a question to its events: search under rights, prompt, model, verified citations.

The engine knows neither requests nor sockets: the caller that receives the events decides what to do with
them.
"""

from .answering import answer
from .run import AcceptedRun, Speaker

__all__ = ["AcceptedRun", "Speaker", "answer"]
