"""Suggests questions that a document may answer, from its headings and definitions.

Questions are tried before they are shown (see chat.engine.trial), except follow-up questions on a site with a
language model.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from chatsite.accounts.principal import Principal
from ingestion.models import Document, Passage
from ingestion.search.sentence_splitting import split_sentences

MAX_QUESTIONS = 12  # per document
# Passages that are searched for questions if a document without stored questions is shown.
LATER_PASSAGES = 30
MAX_PASSAGES = 200  # passages that are searched for questions when a document is read
MIN_CHARACTERS = 100  # characters in a passage whose heading becomes a question
MAX_SUBJECT = 60  # characters of a subject
MAX_WORDS = 8
MAX_PLAIN = 3  # longest heading, in words, that is used in a question without quotation marks

ABOUT_PLAIN = "What should I know about {}?"
ABOUT = {  # questions that quote a heading, which may not fit into the sentence grammatically
    "english": "What should I know about “{}”?",
    "german": "Was sollte ich über „{}“ wissen?",
    "french": "Que faut-il savoir sur « {} » ?",
    "spanish": "¿Qué debo saber sobre «{}»?",
}
_QUOTED = tuple(tuple(sentence.split("{}")) for sentence in ABOUT.values())
_NUMBER = re.compile(
    r"^(?:(?:chapter|section|part|annex|appendix|kapitel|abschnitt)\s+)?[\d.\s§)(:-]+", re.IGNORECASE
)
_DEFINITION = re.compile(
    r"(?P<article>An?\s+)?[\"“]?(?P<thing>[^\W\d_][\w/-]*(?: [\w/-]+){0,3}?)[\"”]?\s+"
    r"(?P<verb>is|are|means)\s+(?:an?|any|all|either)\s"
)
_MODALS = ("can", "may", "must", "should", "will")
# A heading that begins like a question: how to do something, or what “you” must do.
_ASKING = re.compile(
    r"(?P<thing>(?:how|what|when|where|who|whom|which)\b(?: (?!to\b|you\b)\S+){0,4})"
    r"(?: (?:to|you) (?P<verb>\w+))?(?P<rest>.*)",
    re.IGNORECASE,
)
_DEICTIC = re.compile(r"\b(?:[Tt]his|[Tt]hese|[Tt]hose|it|[Dd]iese\w?)\b")
_FUNCTION = re.compile(r"\b(?:an?|and|as|at|by|for|from|in|of|on|or|the|to|using|with)\b", re.IGNORECASE)
_VERSION = re.compile(r"\d\.\d")
_PRONOUNS = frozenset(
    """
    all another any anyone both each either everyone he here how i if it many most neither no nobody none
    nothing one or our she some someone such that the their then there these they this those we what when
    where which who why you your
    """.split()  # noqa: SIM905 (a list of words reads as one)
)
_GENERIC = frozenset(
    """
    abstract acknowledgements annex appendix background changelog conclusion contact contents copyright
    definitions details impressum licence license
    discussion example examples faq general glossary index information introduction methods miscellaneous note
    notes options other overview preamble preface purpose rationale references remarks requirements results
    scope summary terms usage einleitung inhalt übersicht zusammenfassung allgemeines
    """.split()  # noqa: SIM905
)


def document_questions(principal: Principal, public_ids: Sequence[str]) -> list[str]:
    """Questions that these documents may answer, in the order of the ids.

    Includes only documents that `principal` may read.
    """
    readable = Document.objects.visible_to(principal).filter(public_id__in=set(public_ids))
    found = {str(document.public_id): questions_of(document) for document in readable}
    return [question for each in dict.fromkeys(public_ids) for question in found.get(each, ())]


def questions_of(document: Document) -> list[str]:
    """The stored questions of a document, or those that its text suggests.

    A document that was read by an earlier version of the software has no stored questions.
    """
    if document.questions:
        return [question for question in document.questions if isinstance(question, str)]
    passages = Passage.objects.filter(document=document).order_by("position")[:LATER_PASSAGES]
    return questions_about(document.title, document.language, passages.values_list("heading", "content"))


def needs_context(question: str) -> bool:
    """Whether a question only quotes a heading, and so means nothing without the document."""
    return any(question.startswith(first) and question.endswith(last) for first, last in _QUOTED)


def questions_about(title: str, language: str, passages: Iterable[tuple[str, str]]) -> list[str]:
    """At most a dozen questions, in the order of the document.

    Passages are given as (heading, content).
    """
    found: dict[str, None] = {}
    for number, (heading, content) in enumerate(passages):
        if number >= MAX_PASSAGES or len(found) >= MAX_QUESTIONS:
            break
        for question in _questions(title, language, heading, content):
            found.setdefault(question)
    return list(found)[:MAX_QUESTIONS]


def _questions(title: str, language: str, heading: str, content: str) -> Iterator[str]:
    if language == "english":
        yield from _definitions(content)
    subject = subject_of(heading, title)
    if subject.endswith(("?", "？")):
        # Skip a question such as “What is this spec?”, which only makes sense within the document.
        if not _DEICTIC.search(subject):
            yield subject
    elif asking := _ASKING.match(subject):
        # “How to book” becomes “How do I book?”, and “how much leave you have” becomes “How much leave do I
        # have?”.
        thing, verb, rest = asking["thing"], asking["verb"], asking["rest"]
        if verb:
            auxiliary, verb = (verb, "") if verb in _MODALS else ("do", verb)
            asked = " ".join(f"{thing} {auxiliary} I {verb} {rest}".split())
            asked = re.sub(r"\b(you|your)\b", lambda match: {"you": "me", "your": "my"}[match[0]], asked)
            yield f"{asked[:1].upper()}{asked[1:]}?"
    elif subject and len(content) >= MIN_CHARACTERS and language in ABOUT and _is_about(subject, content):
        plain = language == "english" and len(subject.split()) <= MAX_PLAIN and not _FUNCTION.search(subject)
        asked = subject if plain else _innermost(heading, title)
        yield (ABOUT_PLAIN if plain else ABOUT[language]).format(asked)


def _is_about(subject: str, content: str) -> bool:
    """Whether the text also mentions the subject; otherwise the heading may be only a running title."""
    words = {word[:4] for word in re.findall(r"\w{4,}", subject.casefold())}
    text = content.casefold()
    return 3 * sum(word in text for word in words) >= max(1, len(words))


def subject_of(heading: str, title: str = "") -> str:
    """The subject of a passage: its innermost heading that is neither the title nor generic.

    Empty if there is no such heading, or if it is unsuitable, for example too long. A subject begins with a
    lower-case letter, as within a sentence, unless it is a question or begins with a name.
    """
    text = _innermost(heading, title)
    return text if text.endswith("?") else _within_sentence(text)


def _innermost(heading: str, title: str) -> str:
    for part in reversed(heading.split("›")):
        text = _NUMBER.sub("", part).strip(" .:–-")
        words = text.split()
        if not words or text.casefold() == title.casefold():
            continue
        if len(words) == 1 and text.casefold() in _GENERIC:
            continue
        if (
            len(text) > MAX_SUBJECT
            or (text.isupper() and len(words) > 1)
            or _VERSION.search(text)
            or len(words) > MAX_WORDS
            or not any(map(str.isalpha, text))
        ):
            return ""
        return text
    return ""


def _definitions(content: str) -> Iterator[str]:
    for span in split_sentences(content):
        match = None if span.is_heading or span.is_row else _DEFINITION.match(span.text)
        if match is None:
            continue
        words = match["thing"].split()
        if any(word.casefold() in _PRONOUNS for word in words) or not span.text.endswith("."):
            continue
        thing = _within_sentence(match["thing"])
        if match["verb"] == "are":
            yield f"What are {thing}?"
        else:
            yield f"What is {(match['article'] or '').lower()}{thing}?"


def _within_sentence(text: str) -> str:
    """The text with a lower-case first letter, unless it begins with a name or an abbreviation."""
    first, _, rest = text.partition(" ")
    is_name = any(character.isupper() for character in first[1:]) or any(
        word[:1].isupper() for word in rest.split() if len(word) > 3
    )
    return text if is_name else text[:1].lower() + text[1:]
