"""The overrides that the AI-chat documents share: each checked, bounded, and turned into an option."""

from collections.abc import Callable, Mapping
from typing import Any

from chat.requests import InvalidRequest, Options

from . import reading

Reader = Callable[[Any, str], Any]

RETRIEVAL_MODES = ("hybrid", "vectors", "text")
IMAGE_INPUTS = ("text", "textAndImages", "images")
VECTOR_FIELDS = ("embedding", "imageEmbedding")


def _category(value: Any, member: str) -> str:
    return "" if value is None else reading.a_text(value, member)


# Name on the wire → name of the option, and how it is read.
OPTIONS: Mapping[str, tuple[str, Reader]] = {
    "temperature": ("temperature", lambda value, member: reading.a_number(value, member, 0, 2)),
    "top": ("top", lambda value, member: reading.a_whole_number(value, member, 1, 50)),
    "retrieval_mode": (
        "retrieval_mode",
        lambda value, member: reading.one_of(value, member, RETRIEVAL_MODES),
    ),
    "suggest_followup_questions": ("followups", reading.a_flag),
    "include_category": ("include_category", _category),
    "exclude_category": ("exclude_category", _category),
    "minimum_search_score": ("minimum_score", lambda value, member: reading.a_number(value, member, 0, 1)),
}


def _vector_fields(value: Any, member: str) -> None:
    for item in reading.a_list(value, member):
        reading.one_of(item, member, VECTOR_FIELDS)


# Known and checked; what is asked of them beyond their default is reported as being without effect.
DEFAULTS: Mapping[str, tuple[Any, Reader]] = {
    "semantic_ranker": (False, reading.a_flag),
    "semantic_captions": (False, reading.a_flag),
    "use_oid_security_filter": (False, reading.a_flag),
    "use_groups_security_filter": (False, reading.a_flag),
    "use_gpt4v": (False, reading.a_flag),
    "gpt4v_input": (None, lambda value, member: reading.one_of(value, member, IMAGE_INPUTS)),
    "vector_fields": (["embedding"], _vector_fields),
}


def options(overrides: Mapping[str, Any], place: str = "context.overrides") -> Options:
    """Raises InvalidRequest, which names the member; `place` is where the overrides stand in the body."""
    values: dict[str, Any] = {"followups": False}
    without_effect: list[str] = []
    for name, value in overrides.items():
        member = f"{place}.{name}"
        if name in OPTIONS:
            option, read = OPTIONS[name]
            values[option] = read(value, member)
        elif name in DEFAULTS:
            default, read = DEFAULTS[name]
            read(value, member)
            if name == "use_gpt4v" and value:
                raise InvalidRequest(
                    f"“{member}” needs a model that reads images; this site has none.", member
                )
            if value != default and name != "gpt4v_input":
                without_effect.append(name)
        else:
            without_effect.append(name[:100].replace("\x00", "\ufffd"))
    return Options(**values, unknown=tuple(without_effect))
