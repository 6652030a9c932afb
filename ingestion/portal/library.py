"""The list of documents, with filters and counts.

Its pages are stable while documents are added and deleted.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, cast, get_args
from urllib.parse import urlencode
from uuid import UUID

from django.core import signing
from django.db.models import Case, Count, Prefetch, Q, QuerySet, When, prefetch_related_objects
from django.db.models.functions import Lower
from django.utils import timezone

from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal
from ingestion.access.models import AccessEntry
from ingestion.attachment_folder import as_shown
from ingestion.file_names import FOLDER_CHARACTERS
from ingestion.models import EXPIRY_REMINDER, Document, DocumentQuerySet

Show = Literal["all", "mine", "running", "failed", "ending"]
Sort = Literal["newest", "changed", "name", "size"]

PAGE_SIZE = 50
# The columns that display_name needs.
SHOWN_OF_PEOPLE = ("username", "first_name", "last_name", "guest_until")
QUERY_LENGTH = 200
CURSOR = re.compile(r"([0-9]{1,16})-([0-9a-f]{32})")
SALT = "ingestion.listing"
# The column of each sort order, and whether it is descending; ties are ordered by public id.
SORTS: dict[Sort, tuple[str, bool]] = {
    "newest": ("created_at", True),
    "changed": ("changed_at", True),
    "name": ("shown_name", False),
    "size": ("size", True),
}
MAX_CHOICES = 200  # length of each list in Choices
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ListingQuery:
    """The filters and the order of a list of documents."""

    show: Show = "all"
    words: str = ""
    after: str = ""
    folder: str = ""  # a folder with its subfolders
    category: str = ""
    owner: str = ""  # a user name
    sort: Sort = "newest"

    @classmethod
    def of(cls, values: Mapping[str, str]) -> "ListingQuery":
        """The query from the URL's query string; unknown values are ignored."""
        show, sort = values.get("show", ""), values.get("sort", "")
        # Limit the path: the page links to each folder in it, so the total size of these links is quadratic.
        words, folder, category, owner = (
            values.get(name, "")[:FOLDER_CHARACTERS].replace("\x00", "").strip()
            for name in ("q", "folder", "category", "owner")
        )
        return cls(
            cast(Show, show) if show in get_args(Show) else "all",
            words[:QUERY_LENGTH],
            values.get("after", ""),
            folder.strip("/"),
            category,
            owner,
            cast(Sort, sort) if sort in get_args(Sort) else "newest",
        )

    def address(self, **other: str) -> str:
        """The query string with some parameters replaced; for the first page, unless `after` is given."""
        parts = {
            "show": self.show,
            "q": self.words,
            "folder": self.folder,
            "category": self.category,
            "owner": self.owner,
            "sort": self.sort,
        } | other
        usual = {"show": "all", "sort": "newest"}
        return "?" + urlencode(
            {name: part for name, part in parts.items() if part and part != usual.get(name)}
        )

    @property
    def narrowed(self) -> bool:
        """Whether words, folder, category or owner limit the list; counts ignore these."""
        return bool(self.words or self.folder or self.category or self.owner)


@dataclass(frozen=True, slots=True)
class ListingPage:
    """One page, and the cursor of the next (empty at the end)."""

    documents: list[Document]
    next: str


def _conditions(principal: Principal) -> dict[Show, Q]:
    mine = Q(owner_id=principal.user_id)
    return {
        "all": Q(),
        "mine": mine,
        "running": mine & Q(status__in=Document.UNFINISHED),
        "failed": mine & Q(status=Document.Status.FAILED),
        "ending": mine & Q(valid_until__lte=timezone.localdate() + EXPIRY_REMINDER),
    }


def listed_for(principal: Principal) -> DocumentQuerySet:
    """Documents that the caller may read; other people's documents only once they have passages."""
    readable = Document.objects.visible_to(principal)
    return readable.filter(Q(version__gt=0) | Q(owner_id=principal.user_id))


def with_readers(documents: DocumentQuerySet) -> DocumentQuerySet:
    """The documents with owner, container and access list, so that no row needs its own query."""
    return documents.select_related("owner", "part_of").prefetch_related(_readers())


def load_readers(documents: Sequence[Document]) -> None:
    """Load the access lists of documents that were found without :func:`with_readers`."""
    prefetch_related_objects(documents, _readers())


def _readers() -> "Prefetch[str, QuerySet[AccessEntry], str]":
    entries = (
        AccessEntry.objects.select_related("user", "group")
        .only("access_list", "guests", "group__name", *(f"user__{name}" for name in SHOWN_OF_PEOPLE))
        .order_by("group__name", "user__username")
    )
    return Prefetch("access_list__entries", entries)


def counts(principal: Principal) -> dict[str, int]:
    """The number of documents for each filter."""
    named = {name: Count("pk", filter=condition) for name, condition in _conditions(principal).items()}
    return listed_for(principal).order_by().aggregate(**named)


def matching(principal: Principal, query: ListingQuery) -> DocumentQuerySet:
    """Documents that match the query, among those that the caller may see."""
    found = listed_for(principal).filter(_conditions(principal)[query.show])
    found = found.with_words(query.words)
    if query.folder:
        found = found.filter(Q(folder=query.folder) | Q(folder__startswith=f"{query.folder}/"))
    if query.category:
        found = found.filter(category=query.category)
    if query.owner:
        found = found.filter(owner__username=query.owner)
    return found


def page(principal: Principal, query: ListingQuery) -> ListingPage:
    """Up to `PAGE_SIZE` documents in the requested order, after the cursor."""
    found = with_readers(matching(principal, query))
    if query.sort == "newest":
        return page_of(found, "", query.after, PAGE_SIZE)
    column, descending = SORTS[query.sort]
    found = found.annotate(shown_name=Lower(Case(When(title="", then="name"), default="title")))
    try:
        sort, value, last = signing.loads(query.after, salt=SALT)
        public_id = UUID(last)
        if sort == "changed":
            value = datetime.fromisoformat(value)
    except (signing.BadSignature, ValueError, TypeError):
        sort = ""  # the first page
    if sort == query.sort:
        beyond = "lt" if descending else "gt"
        follows = Q(**{f"{column}__{beyond}": value}) | Q(
            **{column: value, f"public_id__{beyond}": public_id}
        )
        found = found.filter(follows)
    sign = "-" if descending else ""
    rows = list(found.order_by(f"{sign}{column}", f"{sign}public_id")[: PAGE_SIZE + 1])
    if len(rows) <= PAGE_SIZE:
        return ListingPage(rows, "")
    last_row = rows[PAGE_SIZE - 1]
    value = getattr(last_row, column)
    kept = value.isoformat() if isinstance(value, datetime) else value
    cursor = signing.dumps([query.sort, kept, last_row.public_id.hex], salt=SALT)
    return ListingPage(rows[:PAGE_SIZE], cursor)


@dataclass(frozen=True, slots=True)
class Choices:
    """Choices for filters: folders with their numbers of documents, categories, and owners."""

    folders: list[tuple[str, str, int]]  # path, name, documents in it and in its subfolders
    categories: list[str]
    owners: list[tuple[str, str]]  # user name, display name


def choices(principal: Principal, query: ListingQuery) -> Choices:
    """Subfolders that contain matches, and categories and owners of all visible documents."""
    readable = listed_for(principal).order_by()
    inside: Counter[str] = Counter()
    beyond = f"{query.folder}/" if query.folder else ""
    shown = matching(principal, query).order_by().exclude(folder__in=["", query.folder])
    for folder, documents in shown.values_list("folder").annotate(Count("pk")):
        inside[folder.removeprefix(beyond).partition("/")[0]] += documents
    owners = User.objects.filter(pk__in=readable.values("owner"), guest_until=None)
    return Choices(
        [
            (beyond + name, name if beyond else as_shown(name), inside[name])
            for name in sorted(inside, key=str.casefold)
        ][:MAX_CHOICES],
        list(
            readable.exclude(category="").order_by("category").values_list("category", flat=True).distinct()
        )[:MAX_CHOICES],
        [(each.username, each.display_name()) for each in owners.order_by("username")[:MAX_CHOICES]],
    )


def page_of(found: DocumentQuerySet, words: str, after: str, size: int) -> ListingPage:
    """Up to `size` documents that match all the words, after the cursor, newest first."""
    found = found.with_words(words)
    match = CURSOR.fullmatch(after)
    if match:
        moment, last = EPOCH + timedelta(microseconds=int(match[1])), UUID(match[2])
        found = found.filter(Q(created_at__lt=moment) | Q(created_at=moment, public_id__lt=last))
    rows = list(found.order_by("-created_at", "-public_id")[: size + 1])
    if len(rows) <= size:
        return ListingPage(rows, "")
    # A cursor of time and public id: the primary key would reveal the number of documents.
    last_row = rows[size - 1]
    microseconds = (last_row.created_at - EPOCH) // timedelta(microseconds=1)
    return ListingPage(rows[:size], f"{microseconds}-{last_row.public_id.hex}")


def ids_in(texts: Iterable[str]) -> list[UUID]:
    """The valid public ids among values that a page sent."""
    found = []
    for text in texts:
        try:
            found.append(UUID(text))
        except ValueError:
            continue
    return found
