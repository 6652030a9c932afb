"""Finds people and groups by parts of their names, for forms that select readers.

Everyone with an account finds all other people with an account, as in an organisation's address book. Guests
may not use the view, and the search offers no guests, service accounts or disabled accounts. Staff find all
groups; others find only the groups that they are in.
"""

import re
from collections.abc import Iterable
from functools import reduce
from operator import and_

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import Group
from django.db.models import Case, Q, QuerySet, Value, When
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from .models import User

MAX_RESULTS = 8
MAX_WORDS, MAX_CHARACTERS = 5, 100  # limits of a query; the rest is ignored
NAMED = re.compile(r".*\((?P<username>[^()\s]+)\)", re.S)


def words_of(query: str) -> list[str]:
    """The words of a query."""
    return query[:MAX_CHARACTERS].replace("\0", "").split()[:MAX_WORDS]


def people(query: str, among: QuerySet[User] | None = None) -> QuerySet[User]:
    """People whose names contain each word of the query, in any order.

    Names that begin with the first word come first. `among` replaces the default selection, which has no
    guests, service accounts or disabled accounts.
    """
    active = User.objects.filter(is_active=True, guest_until=None, service_for="") if among is None else among
    words = words_of(query)
    if not words:
        return active.none()
    found = reduce(and_, (_in_names(word, "icontains") for word in words))
    begins = Case(When(_in_names(words[0], "istartswith"), then=Value(0)), default=Value(1))
    return active.filter(found).order_by(begins, "last_name", "first_name", "username")


def _in_names(word: str, how: str) -> Q:
    names = ("username", "first_name", "last_name")
    return Q(*((f"{name}__{how}", word) for name in names), _connector=Q.OR)


def groups(query: str, user: User) -> QuerySet[Group]:
    """Groups that the user may choose and whose names contain each word of the query."""
    words = words_of(query)
    if not words:
        return Group.objects.none()
    mine = Group.objects.all() if user.is_staff else user.groups.all()
    found = reduce(and_, (Q(name__icontains=word) for word in words))
    begins = Case(When(name__istartswith=words[0], then=Value(0)), default=Value(1))
    return mine.filter(found).order_by(begins, "name")


def entry(user: User) -> str:
    """A person as written in forms: “Ann Smith (ann)”, or only the user name."""
    name = " ".join(re.sub(r"[,;()]", " ", user.get_full_name()).split())
    return f"{name} ({user.username})" if name else user.username


def usernames(text: str) -> set[str]:
    """The user names in typed text.

    Commas, semicolons or line breaks separate the parts of the text; each part is a result of `entry`, or has
    user names with spaces between them.
    """
    found: set[str] = set()
    for piece in re.split(r"[,;\n]", text):
        named = NAMED.fullmatch(piece.strip())
        found |= {named["username"]} if named else set(piece.split())
    return found


@require_safe
@login_required
@cache_control(private=True, no_store=True)
def search(request: HttpRequest, what: str) -> JsonResponse:
    """JSON with up to MAX_RESULTS people or groups whose names match `q`, written as in forms."""
    query, user = request.GET.get("q", ""), request.user
    assert isinstance(user, User)
    found: Iterable[str]
    if what == "groups":
        found = groups(query, user).values_list("name", flat=True)[:MAX_RESULTS]
    else:
        found = map(entry, people(query)[:MAX_RESULTS])
    return JsonResponse({"found": list(found)})
