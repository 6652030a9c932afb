"""One exchange, from a question to its events: search under rights, prompt, model, verified citations.

Knows no request, no socket and no run: whoever iterates decides what becomes of the events.
"""

from .answering import answer
from .exchange import Exchange

__all__ = ["Exchange", "answer"]
