"""Overrides of the AI chat protocols: checked, bounded, and turned into options."""

from collections.abc import Callable, Mapping
from typing import Any

from chat.requests import InvalidRequest, Options

from . import validators

Reader = Callable[[Any, str], Any]

RETRIEVAL_MODES = ("hybrid", "vectors", "text")
IMAGE_INPUTS = ("text", "textAndImages", "images")
VECTOR_FIELDS = {"embedding": "text", "imageEmbedding": "pages"}
# Since 2025 front ends send one of these words instead of a list.
VECTOR_FIELD_SETS = {
    "textEmbeddingOnly": "text",
    "imageEmbeddingOnly": "pages",
    "textAndImageEmbeddings": "both",
}
# Both request page images: the name of 2024 and that of 2026.
PAGE_SWITCHES = ("use_gpt4v", "use_multimodal_answering")
CATEGORY_CHARACTERS = 100
TEMPLATE_CHARACTERS = 10_000
UNKNOWN_TOLD = 50


def _text(most: int) -> Reader:
    """A reader of text with a maximum length."""

    def read(value: Any, member: str) -> str:
        text = validators.a_text(value, member)
        if len(text) > most:
            raise InvalidRequest(f"“{member}” must have at most {most:,} characters.", member)
        return text

    return read


def _number(least: float, most: float) -> Reader:
    return lambda value, member: validators.a_number(value, member, least, most)


def _vector_fields(value: Any, member: str) -> str:
    if isinstance(value, str):
        return VECTOR_FIELD_SETS[validators.one_of(value, member, VECTOR_FIELD_SETS)]
    items = validators.a_list(value, member)
    kinds = {VECTOR_FIELDS[validators.one_of(item, member, VECTOR_FIELDS)] for item in items}
    return "both" if len(kinds) > 1 else "".join(kinds)


def _image_input(value: Any, member: str) -> str:
    """The form in which pages are given to the model; empty for text only."""
    kind = validators.one_of(value, member, IMAGE_INPUTS)
    return "" if kind == "text" else kind


# Name on the wire → name of the option, and how it is read.
OPTIONS: Mapping[str, tuple[str, Reader]] = {
    "temperature": ("temperature", _number(0, 2)),
    "top": ("top", lambda value, member: validators.a_whole_number(value, member, 1, 50)),
    "retrieval_mode": (
        "retrieval_mode",
        lambda value, member: validators.one_of(value, member, RETRIEVAL_MODES),
    ),
    "semantic_ranker": ("ranker", validators.a_flag),
    "semantic_captions": ("captions", validators.a_flag),
    "suggest_followup_questions": ("followups", validators.a_flag),
    "use_oid_security_filter": ("to_person", validators.a_flag),
    "use_groups_security_filter": ("to_groups", validators.a_flag),
    "vector_fields": ("vector_fields", _vector_fields),
    "gpt4v_input": ("pages", _image_input),
    "prompt_template": ("prompt_template", _text(TEMPLATE_CHARACTERS)),
    "include_category": ("include_category", _text(CATEGORY_CHARACTERS)),
    "exclude_category": ("exclude_category", _text(CATEGORY_CHARACTERS)),
    "scope": ("scope", validators.a_scope),
    "minimum_search_score": ("minimum_score", _number(0, 1)),
    "minimum_reranker_score": ("minimum_ranker_score", _number(0, 4)),
}


def options(overrides: Mapping[str, Any], place: str = "context.overrides") -> Options:
    """The options for these overrides; null counts as absent.

    `place` is where the overrides are in the body. Raises InvalidRequest, which names the member.
    """
    values: dict[str, Any] = {"followups": False, "pages": "textAndImages"}
    unknown: list[str] = []
    with_pages = False
    for name, value in overrides.items():
        if name in PAGE_SWITCHES:
            with_pages |= value is not None and validators.a_flag(value, f"{place}.{name}")
        elif name not in OPTIONS:
            unknown.append(name[:100].replace("\x00", "\ufffd"))
        elif value is not None:
            option, read = OPTIONS[name]
            values[option] = read(value, f"{place}.{name}")
    if not with_pages:
        values["pages"] = ""
    if values.get("retrieval_mode") == "vectors" and values.get("vector_fields") == "":
        member = f"{place}.vector_fields"
        raise InvalidRequest(f"“{member}” must name a field where only vectors are searched.", member)
    return Options(**values, unknown=tuple(unknown[:UNKNOWN_TOLD]))
