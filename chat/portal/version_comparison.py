"""Compares two versions of an answer, or of a question with its answers, side by side.

Words that only one version has are marked.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.html import escape
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from chatsite.accounts.page_decorators import for_caller
from chatsite.accounts.principal import Principal
from history.branches import Branches, question_of
from history.models import Conversation, Message
from ingestion.versions.text_comparison import matches

from .conversation.shown_answers import Answer, answers_of
from .source_panel import panel_of
from .views import own_conversation, source_asked_for

# Share of the shorter version's words that must be common; otherwise nearly everything would be marked.
MIN_SHARED = 0.3
# A tag, whose attributes may contain “>”, or the text up to the next tag.
_PART = re.compile(r'<(?:[^<>"]++|"[^"]*+")*+>|[^<]++|<')
_WORD = re.compile(r"\S+")
_NAME = re.compile(r"</?([a-z0-9]+)")
# Elements whose words do not belong to the answer or cannot be marked: source numbers, buttons, formulas.
_CITATION = '<a class="cite'
_LEFT_OUT = frozenset({"button", "math"})


@dataclass(slots=True)
class Version:
    """One version: the messages of its run, each with its text as safe HTML."""

    position: int
    number: int
    parts: list[tuple[Answer, str]]
    others: list[tuple[int, int, bool]]  # choices for this side: position, number, whether it is this version
    question: Message | None = None  # set if versions of a question are compared
    question_html: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The texts of two versions as safe HTML, and how many words only one of them has.

    Each message has its own text.
    """

    before: list[str]
    after: list[str]
    removed: int
    added: int
    alike: bool  # whether they are similar enough to mark the differences


def compared(before: Sequence[str], after: Sequence[str]) -> Comparison:
    """Mark differing words in safe HTML; no mark extends across a tag."""
    old, new = ([word for html in side for _, _, word in _words(html)] for side in (before, after))
    same = matches(old, new)
    shared = sum(length for *_, length in same)
    if shared < MIN_SHARED * min(len(old), len(new)):
        return Comparison(list(before), list(after), len(old), len(new), alike=False)
    kept_old = {start + step for start, _, length in same for step in range(length)}
    kept_new = {start + step for _, start, length in same for step in range(length)}
    return Comparison(
        _marked(before, kept_old, "del", gettext("removed:"), gettext("(end of removed)")),
        _marked(after, kept_new, "ins", gettext("added:"), gettext("(end of added)")),
        len(old) - shared,
        len(new) - shared,
        alike=True,
    )


def _words(html: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and text of each word outside of tags and ignored parts."""
    inside = ""  # name of the open element that is skipped
    depth = 0
    for part in _PART.finditer(html):
        piece = part[0]
        if piece.startswith("<"):
            name = match[1] if (match := _NAME.match(piece)) else ""
            if inside:
                depth += (name == inside) * (-1 if piece.startswith("</") else 1)
                inside = inside if depth else ""
            elif name in _LEFT_OUT or piece.startswith(_CITATION):
                inside, depth = name, 1
        elif not inside:
            for word in _WORD.finditer(html, part.start(), part.end()):
                yield word.start(), word.end(), word[0]


def _marked(texts: Sequence[str], kept: set[int], tag: str, begins: str, ends: str) -> list[str]:
    """The texts with an element around each sequence of words whose indices are not in `kept`."""
    opening = f'<{tag}><span class="hidden">{escape(begins)} </span>'
    closing = f'<span class="hidden"> {escape(ends)}</span></{tag}>'
    index = 0
    marked = []
    for html in texts:
        runs: list[list[int]] = []
        for start, end, _ in _words(html):
            if index not in kept:
                if runs and not html[runs[-1][1] : start].strip():
                    runs[-1][1] = end
                else:
                    runs.append([start, end])
            index += 1
        parts, done = [], 0
        for start, end in runs:
            parts += [html[done:start], opening, html[start:end], closing]
            done = end
        marked.append("".join([*parts, html[done:]]))
    return marked


def _versions(
    principal: Principal, conversation: Conversation, position: int, other: int
) -> tuple[Version, Version]:
    """Both versions, older first.

    Raises Http404 unless `other` is the position of a newer version of the message at `position`, or if a
    compared question has no answer.
    """
    branches = Branches(conversation.pk)
    siblings = branches.siblings(position)
    if position >= other or other not in siblings:
        raise Http404
    compared_rows = {
        row.position: row for row in conversation.messages.filter(position__in=(position, other))
    }
    if len({row.role for row in compared_rows.values()}) != 1:
        raise Http404
    said = conversation.messages.filter(role=Message.Role.ASSISTANT).order_by("position")
    begins = {place: place for place in compared_rows}  # by version, the position of its first answer
    questions = {place: row for place, row in compared_rows.items() if row.role == Message.Role.USER}
    if questions:
        begins = {place: _answer_shown(said, branches.successors(place)) for place in questions}
    first = {row.position: row for row in said.filter(position__in=begins.values())}
    runs = [row.run_id for row in first.values() if row.run_id]
    rows = {row.pk: row for row in [*first.values(), *said.filter(run_id__in=runs)]}
    answers = answers_of(principal, sorted(rows.values(), key=lambda row: row.position))

    def version(place: int) -> Version:
        begin = begins[place]
        run_id = first[begin].run_id
        own = [
            each
            for each in answers
            if each.place == begin or (run_id and each.message.run_id == run_id and each.place > begin)
        ]
        fixed = other if place == position else position
        numbered = [
            (sibling, number, sibling == place)
            for number, sibling in enumerate(siblings, start=1)
            if (sibling < fixed if place == position else sibling > fixed)
        ]
        parts = [(each, each.html) for each in own]
        return Version(place, siblings.index(place) + 1, parts, numbered, questions.get(place))

    return version(position), version(other)


def _answer_shown(answers: QuerySet[Message], places: Sequence[int]) -> int:
    """The position of the chosen answer, or of the newest. Raises Http404 if there is none."""
    rows = list(answers.filter(position__in=places).values_list("position", "chosen"))
    if not rows:
        raise Http404
    chosen = [position for position, is_chosen in rows if is_chosen]
    return chosen[0] if chosen else rows[-1][0]


@require_safe
@for_caller
def compare(
    request: HttpRequest, principal: Principal, conversation_id: UUID, position: int, other: int
) -> HttpResponse:
    """The page with two versions of an answer or a question."""
    row = own_conversation(principal, conversation_id)
    before, after = _versions(principal, row, position, other)
    found = compared([html for _, html in before.parts], [html for _, html in after.parts])
    for version, texts in ((before, found.before), (after, found.after)):
        version.parts = [(answer, text) for (answer, _), text in zip(version.parts, texts, strict=True)]
    if before.question and after.question:
        asked = compared([escape(before.question.content)], [escape(after.question.content)])
        before.question_html, after.question_html = asked.before[0], asked.after[0]
    place = request.GET.get("source")
    panel = panel_of(principal, row, place, *source_asked_for(request)) if place else None
    if place and panel is None:
        raise Http404
    context: dict[str, Any] = {
        "conversation": row,
        "question": question_of(before.parts[0][0].message),
        "versions": (before, after),
        "comparison": found,
        "panel": panel,
        "comparing": True,
    }
    return render(request, "chat/compare.html", context)


@require_safe
@for_caller
def compare_source(
    request: HttpRequest,
    principal: Principal,
    conversation_id: UUID,
    position: int,
    other: int,
    place: str,
) -> HttpResponse:
    """Only the panel with a source, for the script."""
    row = own_conversation(principal, conversation_id)
    _versions(principal, row, position, other)
    panel = panel_of(principal, row, place, *source_asked_for(request))
    if panel is None:
        raise Http404
    return render(request, "chat/panel.html", {"conversation": row, "panel": panel, "comparing": True})
