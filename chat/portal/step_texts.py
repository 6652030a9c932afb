"""The steps behind an answer, in the reader's language."""

import ast
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext, gettext_noop

from chat.engine.verified import VERIFIED_STEP
from chatsite.stored_messages import StoredMessages, localized
from history.signatures import signed

from .citing.source_labels import GONE

STEP_LENGTH = 200  # longest description, in characters, that fits beside its title

YES_NO = {"True": gettext_noop("yes"), "False": gettext_noop("no")}
STEPS = {  # texts for the protocols' titles of steps
    "Original user query": gettext_noop("The question"),
    "Generated search query": gettext_noop("What was searched for"),
    "Results": gettext_noop("Passages found"),
    "Prompt": gettext_noop("What the answer was made from"),
    "Vector fields": gettext_noop("Vectors"),
    "Page images": gettext_noop("Images of pages"),
    "Overrides without effect": gettext_noop("Settings without effect"),
    "Semantic ranker": gettext_noop("Ranked again"),
    "Verified answer": gettext_noop("Verified answer"),
}
FACTS = {  # texts for the properties of steps
    "use_semantic_captions": gettext_noop("short excerpts"),
    "use_semantic_ranker": gettext_noop("ranked again"),
    "has_vector": gettext_noop("searched by meaning, too"),
    "retrieval_mode": gettext_noop("kind of search"),
    "top": gettext_noop("passages at most"),
    "filter": gettext_noop("only where"),
    "scope": gettext_noop("searched in"),
    "also_searched_for": gettext_noop("also searched for"),
    "model": gettext_noop("model"),
    "temperature": gettext_noop("temperature"),
    "minimum_search_score": gettext_noop("lowest score of the search"),
    "minimum_reranker_score": gettext_noop("lowest score of the ranker"),
    "ranker": gettext_noop("ranker"),
    "candidates": gettext_noop("passages ranked"),
    "gpt4v_input": gettext_noop("given to the model"),
    "prompt_template": gettext_noop("instructions of the request"),
    "by": gettext_noop("verified by"),
    "until": gettext_noop("until"),
    "question": gettext_noop("written for"),
}
VALUES = {
    ("retrieval_mode", "hybrid"): gettext_noop("words and meaning"),
    ("retrieval_mode", "text"): gettext_noop("words"),
    ("retrieval_mode", "vectors"): gettext_noop("meaning"),
    ("model", "quotations"): gettext_noop("none, quotations only"),
    ("gpt4v_input", "images"): gettext_noop("images"),
    ("gpt4v_input", "both"): gettext_noop("images and text"),
}
DESCRIPTIONS = StoredMessages(
    (
        gettext_noop("This site has no vectors of images: those of the text are searched instead."),
        gettext_noop("This site has no vectors of images: those of the text are searched."),
        gettext_noop("“vector_fields” names none, so the question is searched by its words alone."),
        gettext_noop(
            "None of the passages found has a page that can be shown as an image, so their text is given."
        ),
        gettext_noop("Images of pages given to the model in place of their text: %(number)s."),
        gettext_noop("Images of pages given to the model beside their text: %(number)s."),
        gettext_noop("The ranker ordered %(number)s passages."),
        gettext_noop("This site has no ranker, so the order is the search’s own. A ranker needs a model."),
        gettext_noop(
            "This site has no ranker, so the order is the search’s own. A ranker needs a model. "
            "“minimum_reranker_score” has no effect without a ranker."
        ),
        gettext_noop("The ranker did not answer, so the order is the search’s own."),
        gettext_noop(
            "The ranker did not answer, so the order is the search’s own. "
            "“minimum_reranker_score” has no effect without a ranker."
        ),
    )
)
# Titles of the steps whose descriptions are translated; other descriptions are shown unchanged.
OF_THE_SITE = frozenset({"Vector fields", "Page images", "Semantic ranker"})
FILTERS = StoredMessages(
    (
        gettext_noop("category is “%(name)s”"),
        gettext_noop("category is not “%(name)s”"),
        gettext_noop("added by the caller"),
        gettext_noop("folder is “%(name)s”"),
        gettext_noop("one of %(number)s chosen"),
        gettext_noop("given to the caller"),
        gettext_noop("given to a group of the caller"),
        gettext_noop("given to the caller or a group of the caller"),
    ),
    {"name": str},
)
BETWEEN_FILTERS = re.compile(r", (?=category is |added by |folder is |one of |given to )")


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the thought process, as text."""

    title: str
    items: list[str]
    facts: list[str]


def step(thought: Mapping[str, Any], gone: Collection[str] = ()) -> Step:
    """A thought as text: its description as items, its properties as facts.

    Citations of labels in `gone` are replaced with a note that the source cannot be opened.
    """
    title = str(thought.get("title", ""))
    props = thought.get("props") or {}
    description = thought.get("description")
    if title == VERIFIED_STEP and props:
        description = signed(props)
    items = []
    for value in description if isinstance(description, list) else [description] if description else []:
        text = spoken(value)
        for label in gone:
            text = text.replace(f"[{label}]", f"[{gettext(GONE)}]")
        items.append(DESCRIPTIONS.translated(text) if title in OF_THE_SITE else text)
    # Texts such as “kind of search: words and meaning”; a property that is not in FACTS keeps its name.
    facts = []
    for name, value in props.items():
        if name == "temperature" and props.get("model") == "quotations":
            continue
        label = gettext(FACTS[name]) if name in FACTS else name.replace("_", " ")
        words = YES_NO.get(str(value)) or VALUES.get((name, str(value)))
        shown = gettext(words) if words else str(value)
        if isinstance(value, float):
            shown = localized(shown)
        if name == "filter":
            shown = ", ".join(map(FILTERS.translated, BETWEEN_FILTERS.split(shown)))
        facts.append(f"{label}: {shown}")
    return Step(gettext(STEPS[title]) if title in STEPS else title, items, facts)


def in_short(thought: Mapping[str, Any]) -> str:
    """The step on one line, such as “The question: May I?”.

    Empty if its description is not a short text.
    """
    description = thought.get("description")
    if not isinstance(description, str) or not description or len(description) > STEP_LENGTH:
        return ""
    shown = step(thought)
    return f"{shown.title}: {' '.join(shown.items)}"


def spoken(value: Any) -> str:
    """An item of a step as text.

    A message of the prompt, which is stored as the repr() of a dictionary, is shown as role and content.
    """
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if not value.startswith("{'role': "):
        return value
    try:
        message = ast.literal_eval(value)
        return f"{message['role']}:\n{message['content']}"
    except (ValueError, SyntaxError, KeyError, TypeError, MemoryError, RecursionError):
        return value
