"""One run, from a question to its events.

Its steps are the search under rights, the prompt, the model, and verified citations. The engine knows neither
requests nor sockets: the caller that receives the events decides what to do with them.
"""

from .answering import answer
from .run import AcceptedRun, Speaker

__all__ = ["AcceptedRun", "Speaker", "answer"]
