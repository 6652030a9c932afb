"""Starting questions for a new conversation, and idempotency keys of questions."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from django.core.cache import cache
from django.utils.translation import get_language

from chat import site_texts
from chat.engine.trial import is_answerable
from chat.llm import configured_model
from chatsite.accounts.principal import Principal
from ingestion.attachment_folder import attached
from ingestion.models import Document
from ingestion.search.translations import language_of
from ingestion.suggested_questions import needs_context, questions_of

KEY = re.compile(r"[A-Za-z0-9-]{8,64}", re.ASCII)


def key_of(value: object) -> str | None:
    """The idempotency key in a form; None if it is invalid, so that the question is asked without one."""
    return value if isinstance(value, str) and KEY.fullmatch(value) else None


STARTS = 3
MAX_CHOSEN = 6  # maximum number of questions by managers that are shown
LOOKED_AT = 24  # newest documents that are considered
TRIED = 12  # questions that are tried; each one needs a search
KEPT_SECONDS = 600
LANGUAGES = {"de": "german", "en": "english"}  # the language of questions, by the code of the page's language


@dataclass(frozen=True, slots=True)
class Start:
    """A starting question, and the category or folder of the document that answers it."""

    question: str
    origin: str


def starts(principal: Principal) -> list[Start]:
    """Up to MAX_CHOSEN questions that managers wrote for the caller.

    If there are fewer than STARTS, generated questions are added.
    """
    chosen = [Start(text, "") for text in site_texts.starting_questions(principal.user_id)[:MAX_CHOSEN]]
    if len(chosen) >= STARTS:
        return chosen
    known = {start.question for start in chosen}
    found = [start for start in found_starts(principal) if start.question not in known]
    return [*chosen, *found[: STARTS - len(chosen)]]


def found_starts(principal: Principal) -> list[Start]:
    """At most three questions that can be answered from documents the caller may read.

    If possible, they are from different folders or categories, and in the language of the page. The result is
    cached for ten minutes by caller, newest readable documents and language.
    """
    newest = Document.objects.visible_to(principal).searchable().exclude(attached()).order_by("-pk")
    columns = ("pk", "version", "title", "name", "folder", "category", "language", "questions")
    documents = list(newest.only(*columns)[:LOOKED_AT])
    if not documents:
        return []
    versions = ",".join(f"{document.pk}.{document.version}" for document in documents)
    language = LANGUAGES.get((get_language() or "")[:2], "")
    key = f"starts:{principal.user_id}:{language}:{hashlib.sha256(versions.encode()).hexdigest()}"
    found: list[Start] | None = cache.get(key)
    if found is not None:
        return found
    model = configured_model()
    answered: dict[int, Start] = {}  # one question for each document
    for document, question in islice(_in_turn(documents, language), TRIED):
        if document.pk in answered or any(start.question == question for start in answered.values()):
            continue
        if is_answerable(principal, model, question, document_id=document.pk):
            answered[document.pk] = Start(question, document.category or document.folder)
            if len(answered) == STARTS:
                break
    found = list(answered.values())
    cache.set(key, found, KEPT_SECONDS)
    return found


def _in_turn(documents: list[Document], language: str) -> Iterator[tuple[Document, str]]:
    """The first question of each document, then the second ones, and so on.

    The first document of each folder or category comes before the others. Questions that are clearly in
    another language come last.
    """
    chosen: dict[str, Document] = {}
    rest: list[Document] = []
    for document in documents:
        origin = document.folder or document.category
        if origin in chosen:
            rest.append(document)
        else:
            chosen[origin] = document
    questions = {
        document.pk: [each for each in questions_of(document) if not needs_context(each)]
        for document in [*chosen.values(), *rest][:LOOKED_AT]
    }
    later: list[tuple[Document, str]] = []
    for place in range(max(map(len, questions.values()), default=0)):
        for document in [*chosen.values(), *rest]:
            if place < len(questions[document.pk]):
                question = questions[document.pk][place]
                if language_of(question) in ("", language):
                    yield document, question
                else:
                    later.append((document, question))
    yield from later
