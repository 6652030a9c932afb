"""Finding one's own conversations by their titles and by what was said in them.

A message is found when it has all the words; three and more characters are enough of a word's beginning.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.contrib.postgres.search import SearchQueryField
from django.db.models import BooleanField, ExpressionWrapper, F, Func, Q, TextField, Value, Window
from django.db.models.functions import Coalesce, RowNumber

from chatsite.accounts.principal import Principal
from ingestion.search.tokens import (
    has_unspaced_script,
    plain_words,
)

from . import listing
from .citation_text import without
from .listing import Place
from .models import Conversation, ConversationQuerySet, Message
from .search_words import (
    owner_word,
    words_of,
)

QUERY_LENGTH = 200
MOST_WORDS = 20
BEGINNING = 3  # characters from which on a word stands for all that begin with it
AROUND = 90  # characters shown on either side of a hit
READ_THROUGH = 100  # newest conversations that are looked through without the index
READ_ON = 400  # that are looked through after them, if no more are left, or if these had at least
SOME = 4
HITS = 3  # messages shown of one conversation


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Text around hits; `marks` are [start, end) of them in it, in characters."""

    text: str
    marks: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that has the words."""

    message: Message
    excerpt: Excerpt


def cleaned(query: str) -> str:
    return " ".join(query.replace("\x00", " ").split())[:QUERY_LENGTH]


def page(
    principal: Principal, query: str, limit: int, below: Place | None = None
) -> tuple[list[Conversation], Place | None]:
    """At most `limit` of the caller's conversations whose title, or one of whose messages, has all words of
    `query`, newest first; and the place where the next page begins, if there is one.

    The newest conversations are read through, which is quick where a word is frequent, in one's own messages
    or in those of others, and more of them if that finds some or hardly any are left; the index finds among
    the rest what is rare.
    """
    words = _words(query)
    if not words:
        return [], None
    rows, older = _read_through(principal, words, READ_THROUGH, below)
    if older and len(rows) <= limit and (len(rows) >= SOME or _are_few(principal, older)):
        more, older = _read_through(principal, words, READ_ON, older)
        rows += more
    if older and len(rows) <= limit:
        rows += listing.page(_indexed(principal, words), limit - len(rows) + 1, older)[0]
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], listing.place(rows[limit - 1])


def _read_through(
    principal: Principal, words: Sequence[str], number: int, below: Place | None
) -> tuple[list[Conversation], Place | None]:
    """Those of the next `number` conversations that have the words; and where the others begin."""
    mine = Conversation.objects.owned_by(principal).annotate(titled=_titled(principal, words))
    read, older = listing.page(mine, number, below)
    found = {row.pk for row in read if row.titled}  # type: ignore[attr-defined]
    said = Message.objects.filter(conversation__in=[row.pk for row in read if row.pk not in found])
    having = said.filter(_read(principal, words)).order_by().distinct()
    found |= set(having.values_list("conversation", flat=True))
    return [row for row in read if row.pk in found], older


def _are_few(principal: Principal, below: Place) -> bool:
    """Whether no more are left than are quickly read through. The index would first collect what begins with
    the words in everybody's messages."""
    left = listing.older(Conversation.objects.owned_by(principal), below)
    return not left.order_by("-updated_at", "-id").values("pk")[READ_ON : READ_ON + 1]


def _titled(principal: Principal, words: Sequence[str]) -> Coalesce:
    """Whether a title has the words; it is read itself where the words in it are not known."""
    return Coalesce(_read(principal, words), ExpressionWrapper(_in_title(words), BooleanField()))


def _indexed(principal: Principal, words: Sequence[str]) -> ConversationQuerySet:
    """What messages and titles have is found once, by their indexes, and then looked up by its keys.

    As arrays, since PostgreSQL expects far too many to begin with a word: it would join all of somebody's
    conversations with those found. Whose messages they are says the word of their owner.
    """
    mine = Conversation.objects.owned_by(principal)
    said = Message.objects.filter(_said(principal, words)).order_by()
    titled = mine.filter(_said(principal, words)).order_by()
    unknown = mine.filter(_in_title(words), search=None).exclude(title="").order_by()
    found = [said.values("conversation"), titled.values("pk"), unknown.values("pk")]
    together = Func(*map(ArraySubquery, found), template="(%(expressions)s)", arg_joiner=" || ")
    return mine.filter(
        Func(
            F("pk"),
            together,
            template="%(expressions)s)",
            arg_joiner=" = ANY(",
            output_field=BooleanField(),
        )
    )


def _in_title(words: Sequence[str]) -> Q:
    titled = Q()
    for word in words:
        titled &= Q(title__iregex=_pattern(word))
    return titled


def hits(principal: Principal, conversations: Sequence[UUID], query: str) -> dict[UUID, list[Hit]]:
    """The first messages with the words in each of these conversations of the caller: one query."""
    words = _words(query)
    if not words or not conversations:
        return {}
    number = Window(RowNumber(), partition_by=F("conversation"), order_by=F("position").asc())
    mine = Message.objects.owned_by(principal).filter(conversation__in=conversations)
    rows = mine.filter(_read(principal, words)).annotate(number=number)
    shown = rows.filter(number__lte=HITS).order_by("conversation_id", "position")
    found: dict[UUID, list[Hit]] = {}
    for row in shown.only("conversation_id", "role", "client_id", "content", "citations", "created_at"):
        text = without(row.content, row.citations)
        found.setdefault(row.conversation_id, []).append(Hit(row, excerpt(text, query)))
    return found


def excerpt(text: str, query: str, *, whole: bool = False) -> Excerpt:
    """The text around the first hit, or its beginning where the words cannot be shown in it."""
    text = " ".join(text.split())
    marks = _marks(text, query)
    if whole:
        return Excerpt(text, tuple(marks))
    first = marks[0] if marks else (0, 0)
    start, end = max(0, first[0] - AROUND), max(first[1], first[0]) + AROUND
    before, after = "… " if start else "", " …" if end < len(text) else ""
    shift = len(before) - start
    inside = tuple((left + shift, right + shift) for left, right in marks if right <= end)
    return Excerpt(before + text[start:end] + after, inside)


def _words(query: str) -> list[str]:
    return words_of(cleaned(query), stored=False)[:MOST_WORDS]


def _said(principal: Principal, words: Sequence[str]) -> Func:
    """Whether a message has the words, for the index to find."""
    return _matches(principal, words, template="(%(expressions)s)", arg_joiner=" @@ ")


def _read(principal: Principal, words: Sequence[str]) -> Func:
    """The same of messages that are found otherwise: as a function, which PostgreSQL asks no index for.

    The index would first collect what begins with these words in everybody's messages.
    """
    return _matches(principal, words, function="ts_match_vq")


def _matches(principal: Principal, words: Sequence[str], **form: str) -> Func:
    parts = [f"'{owner_word(principal.user_id)}'"]
    parts += [f"'{word}':*" if _is_beginning(word) else f"'{word}'" for word in words]
    wanted = Func(
        Value(" & ".join(parts), output_field=TextField()),
        template="CAST(%(expressions)s AS tsquery)",
        output_field=SearchQueryField(),
    )
    return Func(F("search"), wanted, output_field=BooleanField(), **form)


def _is_beginning(word: str) -> bool:
    return len(word) >= BEGINNING and not has_unspaced_script(word)


def _pattern(word: str) -> str:
    """For PostgreSQL; words hold no signs that mean something there."""
    if has_unspaced_script(word):
        return word
    return rf"\m{word}" if _is_beginning(word) else rf"\m{word}\M"


def _marks(text: str, query: str) -> list[tuple[int, int]]:
    """Where the words stand; those with nothing but a space between them are one."""
    patterns = []
    for word in plain_words(cleaned(query)).split()[:MOST_WORDS]:
        if has_unspaced_script(word):
            patterns.append(re.escape(word))
        else:
            end = "" if len(word) >= BEGINNING else r"(?![^\W_])"
            patterns.append(rf"(?<![^\W_]){re.escape(word)}{end}")
    patterns.sort(key=len, reverse=True)
    marks: list[tuple[int, int]] = []
    for match in re.finditer("|".join(patterns), text, re.IGNORECASE) if patterns else ():
        if marks and text[marks[-1][1] : match.start()] in ("", " "):
            marks[-1] = (marks[-1][0], match.end())
        else:
            marks.append(match.span())
    return marks
