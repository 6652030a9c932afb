"""Finds files to quote together: named in the question, selected, or editions of one file."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from chat.sources import SourceView
from ingestion.search.rough_stems import held_stems, stem, stems
from ingestion.search.tokens import plain_words

MAX_FILES = 3
MIN_NAME = 4  # characters; a question is not searched for shorter file names

_SEVERAL = re.compile(
    r"\b(?:both|(?:the|these|those|my) (?:two|three)|(?:die|der|den|diese[nr]?|meine[nr]?) (?:zwei|drei)"
    r"|(?:die |der |den )?beide[nr]?)\b(?: of)?(?: the| these| those| my)?((?: [\w-]{1,30}){1,3})",
    re.IGNORECASE,
)
_KINDS = frozenset(
    stem(word)
    for word in """
    files documents texts attachments versions editions policies handbooks guides manuals contracts reports
    dateien dokumente dokumenten anhänge fassungen richtlinien handbücher verträge berichte texte
    """.split()  # noqa: SIM905 (a list of words reads as one)
)
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class AskedFiles:
    """The files that the answer should quote together: none, or at least two.

    If `are_named` is true, the question refers to these files, by name or as in “both policies”, and
    `question` is the rest of the question; otherwise `question` is the whole question.
    """

    files: tuple[str, ...]
    are_named: bool
    question: str


def asked_files(question: str, passages: Sequence[SourceView], *, chosen: bool) -> AskedFiles:
    """Select files of `passages`. `chosen` says whether only a part of the documents was searched."""
    titles = {each.sourcefile: each.title for each in reversed(passages)}
    files = list(dict.fromkeys(each.sourcefile for each in passages))
    asked = f" {plain_words(question)} "
    named = [
        file for file in files if any(f" {name} " in asked for name in _names(file) if len(name) >= MIN_NAME)
    ]
    if len(named) > 1:
        names = {name for file in named for name in _names(file)}
        rest = " ".join(word for word in question.split() if plain_words(word).strip() not in names)
        return AskedFiles(tuple(named[:MAX_FILES]), True, rest)
    for match in _SEVERAL.finditer(question):
        words = match[1].split()
        kind = next((place for place, word in enumerate(words) if stem(word.lower()) in _KINDS), None)
        if kind is None or len(files) < 2:
            continue
        about = stems(" ".join(words[:kind]))
        fit = [file for file in files if about <= held_stems(f"{file} {titles[file]}")]
        end = match.start(1) + sum(len(word) + 1 for word in words[: kind + 1])
        rest = f"{question[: match.start()]}{' '.join(words[:kind])}{question[end:]}"
        return AskedFiles(tuple((fit if len(fit) > 1 else files)[:MAX_FILES]), True, rest)
    if chosen and 1 < len(files) <= MAX_FILES:
        return AskedFiles(tuple(files), False, question)
    # Editions of one document: “Visitor policy 2025” and “Visitor policy 2026”.
    editions = [file for file in files if _is_edition(file) and _edition_of(file) == _edition_of(files[0])]
    return AskedFiles(tuple(editions[:MAX_FILES]) if len(editions) > 1 else (), False, question)


def _names(file: str) -> tuple[str, str]:
    return plain_words(file), plain_words(file.rpartition(".")[0])


def _is_edition(file: str) -> bool:
    return bool(_DIGITS.search(file))


def _edition_of(file: str) -> str:
    return _DIGITS.sub("", file.rpartition("/")[2])
