"""Full-text search of a person's own conversations, by title and messages.

A conversation matches if all the words occur in its title, or if each occurs in one of its messages. Words of
three or more characters match as prefixes. If a person has very many conversations, the messages of old ones
match only if a single message contains all the words.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.contrib.postgres.aggregates import BoolOr
from django.contrib.postgres.expressions import ArraySubquery
from django.contrib.postgres.search import SearchQueryField
from django.db.models import BooleanField, ExpressionWrapper, F, Func, Q, TextField, Value, Window
from django.db.models.functions import Coalesce, RowNumber

from chatsite.accounts.principal import Principal
from ingestion.search.tokens import (
    has_unspaced_script,
    plain_words,
)

from . import conversation_lists
from .citation_text import without
from .conversation_lists import Place
from .models import Conversation, ConversationQuerySet, Message
from .search_words import (
    owner_word,
    words_of,
)

QUERY_LENGTH = 200
MAX_WORDS = 20
MIN_PREFIX = 3  # characters; shorter words match only whole words
# Markdown syntax before a line or around words, and the separator lines of tables.
MARKUP = re.compile(r"^[ \t:|-]{3,}$|^[ \t]*(?:(?:>|#{1,6}|[*+-])[ \t]+)+|\*\*|\|", re.MULTILINE)
EXCERPT_RADIUS = 90  # characters shown on either side of a hit
FIRST_SCAN = 100  # the number of newest conversations that are scanned without the index
SECOND_SCAN = 400  # the number scanned next, if MIN_FOUND were found, or at most this many are left
MIN_FOUND = 4
HITS = 3  # messages shown of one conversation


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The text around hits. `marks` has the start and end of each hit in `text`, in characters."""

    text: str
    marks: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """A matching message."""

    message: Message
    excerpt: Excerpt


def cleaned(query: str) -> str:
    return " ".join(query.replace("\x00", " ").split())[:QUERY_LENGTH]


def page(
    principal: Principal, query: str, limit: int, below: Place | None = None
) -> tuple[list[Conversation], Place | None]:
    """Up to `limit` of the caller's conversations that match, newest first.

    Also returns the place after which the next page begins. The newest conversations are scanned first, which
    is fast for frequent words. If that finds at least MIN_FOUND, or if few conversations are left, more are
    scanned. Older conversations are searched with the index, which only finds titles and single messages with
    all the words: looking up each frequent word by itself would read most of a person's messages.
    """
    words = _words(query)
    if not words:
        return [], None
    rows, older = _scan(principal, words, FIRST_SCAN, below)
    if older and len(rows) <= limit and (len(rows) >= MIN_FOUND or _are_few(principal, older)):
        more, older = _scan(principal, words, SECOND_SCAN, older)
        rows += more
    if older and len(rows) <= limit:
        rows += conversation_lists.page(_indexed(principal, words), limit - len(rows) + 1, older)[0]
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], conversation_lists.place(rows[limit - 1])


def titled(principal: Principal, query: str, limit: int) -> list[Conversation]:
    """Up to `limit` of the caller's conversations whose title has all words, newest first."""
    words = _words(query)
    if not words:
        return []
    mine = Conversation.objects.owned_by(principal).filter(_has_title(principal, words))
    return conversation_lists.page(mine, limit)[0]


def _has_title(principal: Principal, words: Sequence[str]) -> Coalesce:
    """Whether the title matches; a title without indexed words is matched by a pattern."""
    return Coalesce(_has_words(principal, words), ExpressionWrapper(_in_title(words), BooleanField()))


def _scan(
    principal: Principal, words: Sequence[str], most: int, below: Place | None
) -> tuple[list[Conversation], Place | None]:
    """The matches among the next `most` conversations, and the place after these."""
    mine = Conversation.objects.owned_by(principal).annotate(titled=_has_title(principal, words))
    read, older = conversation_lists.page(mine, most, below)
    found = {row.pk for row in read if row.titled}  # type: ignore[attr-defined]
    said = Message.objects.chosen().filter(conversation__in=[row.pk for row in read if row.pk not in found])
    having = said.filter(_has_any_word(principal, words)).order_by().values("conversation")
    for number, word in enumerate(words):
        name = f"has_{number}"
        having = having.annotate(**{name: BoolOr(_has_words(principal, [word]))}).filter(**{name: True})
    found |= set(having.values_list("conversation", flat=True))
    return [row for row in read if row.pk in found], older


def _are_few(principal: Principal, below: Place) -> bool:
    """Whether so few conversations follow the place `below` that they are scanned without the index."""
    left = conversation_lists.older(Conversation.objects.owned_by(principal), below)
    return not left.order_by("-updated_at", "-id").values("pk")[SECOND_SCAN : SECOND_SCAN + 1]


def _indexed(principal: Principal, words: Sequence[str]) -> ConversationQuerySet:
    """Conversations found by the indexes of messages and titles, then looked up by key.

    The keys are passed as arrays, because PostgreSQL overestimates how many rows match a prefix, and would
    join all of the person's conversations with the matches. The owner's word (see search_words) limits the
    matches to that person.
    """
    mine = Conversation.objects.owned_by(principal)
    said = Message.objects.chosen().filter(_has_words_by_index(principal, words)).order_by()
    titled = mine.filter(_has_words_by_index(principal, words)).order_by()
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
        pattern = word  # words have no characters that are special in a pattern
        if not has_unspaced_script(word):
            pattern = rf"\m{word}" if _is_beginning(word) else rf"\m{word}\M"
        titled &= Q(title__iregex=pattern)
    return titled


def hits(principal: Principal, conversations: Sequence[UUID], query: str) -> dict[UUID, list[Hit]]:
    """The first matching messages of each of the caller's given conversations, in one query.

    If no message of a conversation has all the words, its messages that have some of them are returned.
    """
    words = _words(query)
    if not words or not conversations:
        return {}
    has_all = _has_words(principal, words)
    number = Window(
        RowNumber(), partition_by=F("conversation"), order_by=[F("has_all").desc(), F("position").asc()]
    )
    mine = Message.objects.owned_by(principal).chosen().filter(conversation__in=conversations)
    rows = mine.filter(_has_any_word(principal, words)).annotate(has_all=has_all, number=number)
    shown = rows.filter(number__lte=HITS).order_by("conversation_id", "number")
    found: dict[UUID, list[Hit]] = {}
    complete: set[UUID] = set()
    for row in shown.only(
        "conversation_id", "position", "role", "client_id", "content", "citations", "created_at"
    ):
        if row.has_all:  # type: ignore[attr-defined]
            complete.add(row.conversation_id)
        elif row.conversation_id in complete:
            continue
        text = MARKUP.sub("", without(row.content, row.citations))
        found.setdefault(row.conversation_id, []).append(Hit(row, excerpt(text, query)))
    return found


def excerpt(text: str, query: str, *, whole: bool = False) -> Excerpt:
    """The text around the first hit, or its beginning without a hit; all of it if `whole`."""
    text = " ".join(text.split())
    marks = _marks(text, query)
    if whole:
        return Excerpt(text, tuple(marks))
    first = marks[0] if marks else (0, 0)
    start, end = max(0, first[0] - EXCERPT_RADIUS), max(first[1], first[0]) + EXCERPT_RADIUS
    before, after = "… " if start else "", " …" if end < len(text) else ""
    shift = len(before) - start
    inside = tuple((left + shift, right + shift) for left, right in marks if right <= end)
    return Excerpt(before + text[start:end] + after, inside)


def _words(query: str) -> list[str]:
    return words_of(cleaned(query), stored=False)[:MAX_WORDS]


def _has_words_by_index(principal: Principal, words: Sequence[str]) -> Func:
    """The condition that a row matches, as an operator, so that PostgreSQL uses the index."""
    return _matches(principal, words, template="(%(expressions)s)", arg_joiner=" @@ ")


def _has_words(principal: Principal, words: Sequence[str]) -> Func:
    """The condition that a row matches, as a function, so that PostgreSQL uses no index.

    Used if other conditions select the rows: for a prefix, the index would collect all people's matches.
    """
    return _matches(principal, words, function="ts_match_vq")


def _has_any_word(principal: Principal, words: Sequence[str]) -> Func:
    """Like :func:`_has_words`, but for rows with at least one of the words."""
    return _matches(principal, words, between=" | ", function="ts_match_vq")


def _matches(principal: Principal, words: Sequence[str], *, between: str = " & ", **form: str) -> Func:
    parts = [f"'{word}':*" if _is_beginning(word) else f"'{word}'" for word in words]
    wanted = Func(
        Value(f"'{owner_word(principal.user_id)}' & ({between.join(parts)})", output_field=TextField()),
        template="CAST(%(expressions)s AS tsquery)",
        output_field=SearchQueryField(),
    )
    return Func(F("search"), wanted, output_field=BooleanField(), **form)


def _is_beginning(word: str) -> bool:
    return len(word) >= MIN_PREFIX and not has_unspaced_script(word)


def _marks(text: str, query: str) -> list[tuple[int, int]]:
    """The positions of the query's words in the text; adjacent ones become one position."""
    patterns = []
    for word in plain_words(cleaned(query)).split()[:MAX_WORDS]:
        if has_unspaced_script(word):
            patterns.append(re.escape(word))
        else:
            end = "" if len(word) >= MIN_PREFIX else r"(?![^\W_])"
            patterns.append(rf"(?<![^\W_]){re.escape(word)}{end}")
    patterns.sort(key=len, reverse=True)
    marks: list[tuple[int, int]] = []
    for match in re.finditer("|".join(patterns), text, re.IGNORECASE) if patterns else ():
        if marks and text[marks[-1][1] : match.start()] in ("", " "):
            marks[-1] = (marks[-1][0], match.end())
        else:
            marks.append(match.span())
    return marks
