"""The key that a browser gives to each question, so that a question sent twice is asked once."""

import re

KEY = re.compile(r"[A-Za-z0-9-]{8,64}", re.ASCII)


def key_of(value: object) -> str | None:
    """None for what no page of ours has sent: such a question is simply asked."""
    return value if isinstance(value, str) and KEY.fullmatch(value) else None
