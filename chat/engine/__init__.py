"""One run, from a question to its events.

Its steps are the search with the caller's rights, the prompt, the model, and the verification of citations.
The engine does not depend on HTTP requests or sockets: its caller decides what to do with the events.
"""

from .answering import answer
from .run import AcceptedRun, Speaker

__all__ = ["AcceptedRun", "Speaker", "answer"]
