"""Parses titles, queries, follow-up questions, grades and verdicts from responses."""

import re
from collections.abc import Iterable

from ingestion.search.form_wishes import without_form_wishes

FOLLOWUPS = 3
FOLLOWUP_LENGTH = 200
TITLE_LENGTH = 60
TITLE_WORDS = 10  # the prompt asks for at most six; a text of more than ten is not a title
QUERY_LENGTH = 1000

# Some servers omit the opening tag of the reasoning; in a truncated response, the closing tag may be missing.
_REASONED = re.compile(r"\A.*</think(?:ing)?>", re.S | re.I)
_REASONING = re.compile(r"<think(?:ing)?>.*", re.S | re.I)
_NUMBER = re.compile(r"\s*(?:[-*•–]|\(?\d{1,2}[.):])\s+|\s*\*{2}")
_LABEL = re.compile(r"(?:title|titel|search query|query|suchanfrage)\s*:\s*", re.I)
_GRADE = re.compile(r"\W*+(\d{1,3})\W++([0-4](?:\.\d+)?)(?:\s*+/\s*+4)?\W*+")
_SUPPORTED = re.compile(r"(?:statement\s)?\W*+(\d{1,3})\W++(yes|no)\W*+", re.I)
_AROUND = " \t\"'“”„«»`*,"
_QUESTION_MARKS = ("?", "？", "؟")


def without_reasoning(text: str) -> str:
    return _REASONING.sub("", _REASONED.sub("", text)).strip()


def title(text: str) -> str:
    """The title in a response; empty if the response is not a title."""
    line = _line(text).rstrip(".。 ")
    fits = len(line) <= TITLE_LENGTH and len(line.split()) <= TITLE_WORDS and not line.endswith(":")
    return line if fits and any(map(str.isalnum, line)) else ""


def title_of(question: str) -> str:
    """A title from the first words of a question, without wishes such as “Answer in one sentence.”"""
    words = " ".join(without_form_wishes(question).split())
    if len(words) > TITLE_LENGTH:
        words = words[:TITLE_LENGTH].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"
    return words[:1].upper() + words[1:].rstrip("?")


def search_query(text: str) -> str:
    return _line(text)[:QUERY_LENGTH]


def followups(text: str, asked: Iterable[str]) -> list[str]:
    """At most three questions in a response, without those already asked."""
    return questions(text, asked)[:FOLLOWUPS]


def questions(text: str, asked: Iterable[str] = ()) -> list[str]:
    """The questions in a response, each once, without those already asked."""
    known = {_normal(question) for question in asked}
    found: list[str] = []
    for line in without_reasoning(text).splitlines():
        number = _NUMBER.match(line)
        question = _bare(line[number.end() :] if number else line)
        if not question.endswith(_QUESTION_MARKS) or len(question) > FOLLOWUP_LENGTH:
            continue
        if _normal(question) not in known:
            known.add(_normal(question))
            found.append(question)
    return found


def grades(text: str, count: int) -> dict[int, float]:
    """Grades by index, from lines such as “3: 4”: the passage's number (from 1), and a grade (0 to 4)."""
    lines = without_reasoning(text).splitlines()
    found = ((int(match[1]) - 1, float(match[2])) for line in lines if (match := _GRADE.fullmatch(line)))
    return {place: min(grade, 4.0) for place, grade in found if 0 <= place < count}


def supported(text: str, count: int) -> dict[int, bool]:
    """Verdicts by index, from lines such as “3: yes” (numbers of statements begin at 1).

    A statement with both verdicts counts as not supported.
    """
    found: dict[int, bool] = {}
    for line in without_reasoning(text).splitlines():
        match = _SUPPORTED.fullmatch(line.strip()[:40])
        if match and 0 < (number := int(match[1])) <= count:
            found[number - 1] = match[2].lower() == "yes" and found.get(number - 1, True)
    return found


def _line(text: str) -> str:
    """The first non-empty line, without label, quotes and markup."""
    for line in without_reasoning(text).splitlines():
        if bare := _bare(_LABEL.sub("", _bare(line.lstrip("# ")), count=1)):
            return bare
    return ""


def _bare(text: str) -> str:
    return " ".join(text.strip(_AROUND).split())


def _normal(question: str) -> str:
    return question.strip("?？؟ ").casefold()
