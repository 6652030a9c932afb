"""Import and export of the glossary as CSV. A file is imported completely or not at all."""

import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext

from chatsite.accounts.models import User
from chatsite.http.csv_cells import BadFile, bad_line, csv_of, rows_of, text_of
from ingestion.search.tokens import plain_words

from .models import HouseWord, names_of

COLUMNS = ("word", "other words", "meaning", "groups", "kind")
DELIMITERS = ",;\t"
BETWEEN_GROUPS = "|"
# An optional first line, before the header, with which a file declares its separator to Excel.
SEPARATOR_LINE = re.compile(r"sep=([,;\t])\r?\n")
MAX_WORDS = 5_000  # maximum number of entries of a site

Kind = HouseWord.Kind


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """How many entries of a file were new, and how many existed with other content."""

    new: int
    changed: int


@dataclass(frozen=True, slots=True)
class Line:
    """An entry in a file."""

    number: int
    word: HouseWord
    groups: frozenset[int]

    @property
    def key(self) -> tuple[str, str]:
        return key_of(self.word)

    @classmethod
    def of(cls, cells: "dict[str, str]", number: int, groups: "dict[str, int]") -> "Line":
        """Parse a line, given as cells by column; it may name only `groups`. Raises BadFile."""
        kind = cells.get("kind", "").lower() or Kind.TERM
        if kind not in Kind.values:
            words = gettext("the kind must be “%(one)s” or “%(other)s”.")
            raise bad_line(number, words % {"one": Kind.TERM.value, "other": Kind.EVERYDAY.value})
        if any("\0" in cell for cell in cells.values()):
            raise bad_line(number, gettext("it contains a NUL character."))
        others = ", ".join(names_of(cells.get("other words", "")))
        word = HouseWord(kind=kind, term=cells["word"], synonyms=others, meaning=cells.get("meaning", ""))
        try:
            word.full_clean()
        except ValidationError as error:
            raise bad_line(number, " ".join(error.messages)) from None
        cell = io.StringIO(cells.get("groups", ""), newline="")
        rows = csv.reader(cell, delimiter=BETWEEN_GROUPS, skipinitialspace=True)
        named = [name for row in rows for each in row if (name := each.strip())]
        if unknown := [name for name in named if name not in groups]:
            words = gettext("you are not in a group named “%(name)s”.")
            raise bad_line(number, words % {"name": unknown[0][:100]})
        return cls(number, word, frozenset(groups[name] for name in named))


def key_of(word: HouseWord) -> tuple[str, str]:
    """The key for matching entries: kind, and names in `term` regardless of order and case."""
    return word.kind, ",".join(sorted(plain_words(name) for name in names_of(word.term)))


def group_ids(word: HouseWord) -> frozenset[int]:
    return frozenset(group.pk for group in word.groups.all())


def groups_of(user: User) -> "dict[str, int]":
    """The groups for which a manager may edit entries, by name: their own; all for superusers."""
    groups = Group.objects.all() if user.is_superuser else Group.objects.filter(user=user)
    return dict(groups.values_list("name", "pk"))


def write_csv(user: User) -> str:
    """The entries that `user` manages, in the format of read_csv, with a byte order mark for Excel."""
    rows = [COLUMNS]
    words = HouseWord.objects.managed_by(user.pk, is_superuser=user.is_superuser)
    for word in words.prefetch_related("groups"):
        # Names of groups in one cell, quoted like CSV cells if they contain a separator.
        cell = io.StringIO()
        names = sorted(group.name for group in word.groups.all())
        csv.writer(cell, delimiter=BETWEEN_GROUPS, lineterminator="").writerow(names)
        groups = cell.getvalue()
        if word.restricted and not groups:
            # Skip an entry whose groups were deleted. It is hidden, but would be imported for everyone.
            continue
        others = ", ".join(names_of(word.synonyms))
        rows.append((word.term, others, word.meaning, groups, word.kind))
    return csv_of(rows)


def read_csv(user: User, content: bytes) -> ImportCounts:
    """Import a file: add entries and change existing ones.

    Raises BadFile without changing anything.
    """
    found: dict[tuple[tuple[str, str], frozenset[int]], Line] = {}
    for each in _lines(user, text_of(content)):
        if first := found.get((each.key, each.groups)):
            words = gettext("“%(word)s” is in line %(other)s already.")
            raise bad_line(each.number, words % {"word": each.word.term[:100], "other": first.number})
        found[each.key, each.groups] = each
    if not found:
        raise BadFile(gettext("The file has no words."))
    return _store(user, list(found.values()))


def _store(user: User, lines: list[Line]) -> ImportCounts:
    changed = 0
    managed = HouseWord.objects.managed_by(user.pk, is_superuser=user.is_superuser)
    with transaction.atomic():
        # Find the existing entry for each line: preferably one with the same groups, otherwise any with the
        # same key.
        known: dict[tuple[str, str], list[HouseWord]] = defaultdict(list)
        for word in managed.select_for_update().prefetch_related("groups"):
            known[key_of(word)].append(word)
        stored: dict[int, HouseWord] = {}
        for same_groups in (True, False):
            for line in lines:
                words = [
                    each for each in known[line.key] if not same_groups or group_ids(each) == line.groups
                ]
                if words and line.number not in stored:
                    stored[line.number] = words[0]
                    known[line.key].remove(words[0])

        new = [line for line in lines if line.number not in stored]
        free = MAX_WORDS - HouseWord.objects.count()
        if len(new) > free:
            raise BadFile(
                gettext("The file has new words: %(count)s; there is room for %(free)s.")
                % {"count": len(new), "free": max(free, 0)}
            )
        for line in lines:
            word = stored.get(line.number, line.word)
            if line.number in stored:
                if _contents(word) == _contents(line.word) and group_ids(word) == line.groups:
                    continue
                changed += 1
            word.term, word.synonyms, word.meaning = _contents(line.word)
            word.restricted = bool(line.groups)
            word.save()
            word.groups.set(line.groups)
    return ImportCounts(len(new), changed)


def _contents(word: HouseWord) -> tuple[str, str, str]:
    return word.term, word.synonyms, word.meaning


def _lines(user: User, text: str) -> Iterator[Line]:
    groups = groups_of(user)
    first = text.partition("\n")[0]
    declared = SEPARATOR_LINE.match(text)
    delimiter = declared[1] if declared else max(DELIMITERS, key=first.count)
    header: list[str] = []
    for line, cells in rows_of(text, delimiter):
        if declared and line == 1:
            continue
        if not header:
            header = [cell.lower() for cell in cells]
            while header and not header[-1]:
                header.pop()
            if "word" not in header or len(set(header)) < len(header) or not set(header) <= set(COLUMNS):
                words = gettext("it must name the columns: “word”, and any of %(others)s.")
                raise bad_line(line, words % {"others": ", ".join(COLUMNS[1:])})
        elif any(cells):
            if len(cells) > len(header) and any(cells[len(header) :]):
                words = gettext("its number of columns is %(count)s instead of %(wanted)s.")
                raise bad_line(line, words % {"count": len(cells), "wanted": len(header)})
            yield Line.of(dict(zip(header, cells, strict=False)), line, groups)
