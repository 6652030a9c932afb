"""Whether a text defines the thing that a question asks about."""

import re
from collections.abc import Sequence

from .rough_stems import held_stems, stems
from .sentence_splitting import spans_of

MAX_DEFINED = 200  # longest question that can ask for a definition, in characters
SUBJECT_WORDS = 2  # words that may precede the verb of a definition, in addition to those of the subject
_DEFINITION = re.compile(
    r"(?:what (?:is|are|does)|what's|was (?:ist|sind|bedeutet)) (?:(?:an?|the|ein|eine|der|die|das) )?"
    r"(?P<thing>[^?]{2,60}?)(?: (?:used for|for|mean|stand for|good for))?\Z",
    re.IGNORECASE,
)
_WHAT_IS = re.compile(
    r"(?:[Ww]hat (?:is|are)|[Ww]hat's|[Ww]as (?:ist|sind)) (?:(?:an?|eine?) (?P<thing>[^?]{2,60}?)"
    r"|(?P<name>[A-ZÄÖÜ]\w+(?: [A-ZÄÖÜ]\w+){0,3}))\?\Z"
)
_STATES = re.compile(
    r"\b(?:is|are|means?|refers?|contains?|includes?|holds?|consists?|provides?|describes?|offers?|ist|sind|bedeutet)\b",
    re.IGNORECASE,
)
_CALLED = re.compile(r"\b(?:called|known as|termed) (?:an? |the )?[\"“]([^\"”]{2,60})[\"”]")
_TO = re.compile(r"To [\"“]([^\"”]{2,60})[\"”]")
_POINTS = re.compile(r"(?:this|it|these|they|dies\w{0,2}|es|sie)\b", re.IGNORECASE)
_BEFORE_CLAUSE = re.compile(r"(?:when|if|while|once|wenn|falls|sobald|während)\b", re.IGNORECASE)


def defined_thing(question: str) -> frozenset[str]:
    """The stems of the thing that the question asks to define; empty for other questions."""
    match = _DEFINITION.match(" ".join(question[:MAX_DEFINED].split()).rstrip("? "))
    return stems(match["thing"]) if match else frozenset()


def asks_definition(question: str) -> bool:
    """Whether the question has the form “What is a …?” or “What is NAME?”."""
    return _WHAT_IS.match(" ".join(question[:MAX_DEFINED].split())) is not None


def gives_definition(question: str, texts: Sequence[str]) -> bool:
    """Whether `texts` answer “What is a …?” or “What is NAME?”; true for other questions.

    The first text is the content; the others are its headings.
    """
    match = _WHAT_IS.match(" ".join(question[:MAX_DEFINED].split()))
    if match is None:
        return True
    thing = stems(match["thing"] or match["name"])
    headings = held_stems(" ".join(texts[1:]))
    words = len(match[0].split()) + SUBJECT_WORDS
    return any(
        states(thing, span.text, headings)
        or (thing <= held_stems(" ".join(span.text.split()[:words])) and not _BEFORE_CLAUSE.match(span.text))
        for text in texts[:1]
        for span in spans_of(text)
    )


def defines(question: str, heading: str, content: str) -> bool:
    """Whether `content`, below `heading`, defines what the question asks about."""
    thing = defined_thing(question)
    if not thing:
        return False
    headings = held_stems(heading)
    return any(states(thing, span.text, headings) for span in spans_of(content) if not span.is_heading)


def states(thing: frozenset[str], text: str, headings: frozenset[str] = frozenset()) -> bool:
    """Whether `text` begins with the thing and says what it is, or introduces its quoted name.

    If it begins with a pronoun, as in “This directory contains …”, the headings may name the thing.
    """
    if not thing:
        return False
    called = _CALLED.search(text)
    if called and thing == stems(called[1]):
        return True
    to = _TO.match(text)
    if to and thing == stems(to[1]):
        return True
    verb = _STATES.search(text)
    if verb is None:
        return False
    subject = text[: verb.start()]
    if _POINTS.match(subject) and len(subject.split()) <= SUBJECT_WORDS:
        return thing <= held_stems(subject) | headings
    return len(subject.split()) <= len(thing) + SUBJECT_WORDS and thing <= held_stems(subject)
