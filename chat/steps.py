"""The steps of an answer's making, as text."""

import ast
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

YES_NO = {"True": "yes", "False": "no"}


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the thought process."""

    title: str
    items: list[str]
    facts: list[str]


def step(thought: Mapping[str, Any], gone: Collection[str] = ()) -> Step:
    """A thought as text: description in items, properties as facts; labels in `gone` lose their names."""
    description = thought.get("description")
    values = description if isinstance(description, list) else [description] if description else []
    props = (thought.get("props") or {}).items()
    facts = [f"{name.replace('_', ' ')}: {YES_NO.get(str(value), value)}" for name, value in props]
    return Step(str(thought.get("title", "")), [_without(spoken(value), gone) for value in values], facts)


def spoken(value: Any) -> str:
    """An item of a step as text. A message of the prompt is kept as its representation, role and content."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if not value.startswith("{'role': "):
        return value
    try:
        message = ast.literal_eval(value)
        return f"{message['role']}:\n{message['content']}"
    except (ValueError, SyntaxError, KeyError, TypeError, MemoryError, RecursionError):
        return value


def _without(text: str, gone: Collection[str]) -> str:
    for label in gone:
        text = text.replace(f"[{label}]", "[a source you can no longer open]")
    return text
