"""Validators of request members. Each raises an InvalidRequest that names the member."""

from collections.abc import Callable, Collection
from typing import Any

from chat.requests import InvalidRequest, is_scope

Reader = Callable[[Any, str], Any]  # validates the value of a member, and returns it


def require_object(value: Any, member: str) -> dict[str, Any]:
    """A JSON object; null counts as an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidRequest(f"“{member}” must be an object.", member)
    return value


def require_list(value: Any, member: str) -> list[Any]:
    """A list; null counts as missing."""
    if value is None:
        raise InvalidRequest(f"“{member}” is missing.", member)
    if not isinstance(value, list):
        raise InvalidRequest(f"“{member}” must be a list.", member)
    return value


def require_text(value: Any, member: str) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(f"“{member}” must be text.", member)
    if "\x00" in value:  # PostgreSQL cannot store NUL
        raise InvalidRequest(f"“{member}” contains characters that are not text.", member)
    return value


def require_boolean(value: Any, member: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidRequest(f"“{member}” must be true or false.", member)
    return value


def optional_boolean(value: Any, member: str) -> bool:
    """False if the member is absent or null."""
    return value is not None and require_boolean(value, member)


def require_number(value: Any, member: str, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise InvalidRequest(f"“{member}” must be a number from {least:g} to {most:g}.", member)
    return float(value)


def require_integer(value: Any, member: str, least: int, most: int) -> int:
    if isinstance(value, float) and value.is_integer():  # in JSON, 1.0 and 1 are the same number
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        allowed = f"a whole number from {least} to {most}" if least < most else str(least)
        raise InvalidRequest(f"“{member}” must be {allowed}.", member)
    return value


def require_choice(value: Any, member: str, choices: Collection[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        names = ", ".join(f"“{choice}”" for choice in choices)
        raise InvalidRequest(f"“{member}” must be one of {names}.", member)
    return value


def require_scope(value: Any, member: str) -> str:
    """The part of the documents that is searched (see ingestion.search.scopes)."""
    text = require_text(value, member)
    if not is_scope(text):
        words = "“all”, “own”, “folder:…”, “category:…” or “document:…” with the id of a document"
        raise InvalidRequest(f"“{member}” must be {words}.", member)
    return text


def text_of(most: int) -> Reader:
    """A reader of text with at most this many characters."""

    def read(value: Any, member: str) -> str:
        text = require_text(value, member)
        if len(text) > most:
            raise InvalidRequest(f"“{member}” must have at most {most:,} characters.", member)
        return text

    return read


def number_from(least: float, most: float) -> Reader:
    return lambda value, member: require_number(value, member, least, most)


def integer_from(least: int, most: int) -> Reader:
    return lambda value, member: require_integer(value, member, least, most)


def one_of(*choices: str) -> Reader:
    return lambda value, member: require_choice(value, member, choices)
