"""Explains why a person may or may not read a document, from the entries of its access list."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args
from uuid import UUID

from django.conf import settings
from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Concat
from django.utils.translation import gettext, gettext_noop

from chatsite.accounts import directory
from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal
from ingestion.models import Document
from ingestion.reasons import in_words
from ingestion.search.labels import identifier_range

from .models import AccessEntry

NAMES_SHOWN = 10
DOCUMENTS_SHOWN = 20
MAX_BRACKETS = 5  # how many opening brackets are tried as the start of the path in “title (path)”
NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)

Kind = Literal["owner", "person", "group", "guests", "everyone"]
KINDS = get_args(Kind)  # in the order in which the reasons are shown
TO_THEMSELVES: dict[Kind, str] = {
    "owner": gettext_noop("You added it."),
    "person": gettext_noop("It is shared with you."),
    "group": gettext_noop("You are in {group}, and {group} may read it."),
    "everyone": gettext_noop("Everyone who signs in may read it."),
    "guests": gettext_noop("Everyone may read it, even without signing in."),
}
TO_OTHERS: dict[Kind, str] = TO_THEMSELVES | {
    "owner": gettext_noop("{person} added it."),
    "person": gettext_noop("It is shared with {person}."),
    "group": gettext_noop("{person} is in {group}, and {group} may read it."),
}


@dataclass(frozen=True, slots=True)
class AccessReason:
    """One entry of a document's access list that includes the person."""

    kind: Kind
    group: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Whether a person may read a document, and why, as shown to another person."""

    readable: bool
    verdict: str
    reasons: tuple[str, ...]  # why the person may read it; or why not, and who may
    notes: tuple[str, ...]  # other conditions that affect what the person sees of the document


def why_readable(principal: Principal, document: Document) -> list[str]:
    """The reasons why the caller may read the document, as sentences; empty if they may not."""
    user = User.objects.filter(pk=principal.user_id, is_active=True).first()
    grounds = _access_reasons(user, document) if user else []
    return [gettext(TO_THEMSELVES[ground.kind]).format(group=ground.group) for ground in grounds]


def explain(user: User, document: Document) -> Explanation:
    """Explain to an administrator why the person may, or may not, read the document."""
    name = user.get_username()
    grounds = _access_reasons(user, document)
    reasons = [gettext(TO_OTHERS[ground.kind]).format(person=name, group=ground.group) for ground in grounds]
    readable = bool(grounds) and user.is_active
    if not grounds:
        reasons = _why_not(user, document)
    if not user.is_active:
        disabled = gettext("The account {person} is disabled, so it may not read anything.")
        reasons = [disabled.format(person=name)] + [
            gettext("If the account were active: {reason}").format(reason=reason) for reason in reasons
        ]
    verdict = (
        gettext("{person} may read {document}.") if readable else gettext("{person} may not read {document}.")
    )
    return Explanation(
        readable,
        verdict.format(person=name, document=document.name),
        tuple(reasons),
        tuple(_notes(user, document, readable)),
    )


def people_named(text: str) -> list[User]:
    """The person with this user name; if there is none, up to two people with this full name.

    `text` may also contain both names, in the form of `directory.entry`.
    """
    text = text.replace("\0", "").strip()
    named = directory.NAMED.fullmatch(text)
    for username in (text, named["username"] if named else text):
        if user := User.objects.filter(username=username).first():
            return [user]
    full_name = Concat("first_name", Value(" "), "last_name")
    return list(User.objects.filter(guest_until=None).alias(name=full_name).filter(name__iexact=text)[:2])


def documents_like(query: str, reader: User) -> QuerySet[Document]:
    """Documents that the reader may list and whose title, name or folder has each word of the query."""
    words = directory.words_of(query)
    if not words:
        return Document.objects.none()
    found = Document.objects.order_by("title", "folder", "name", "pk")
    if reader.has_perm("ingestion.view_document"):
        found = found.without_private(reader.pk)
    else:
        found = found.filter(access_list__in=AccessEntry.lists_of(reader.pk))
    for word in words:
        found = found.filter(Q(title__icontains=word) | Q(name__icontains=word) | Q(folder__icontains=word))
    return found


def document_entry(document: Document) -> str:
    """A document as written in forms: “Leave rules (hr/leave.pdf)”, or only the path."""
    path = f"{document.folder}/{document.name}" if document.folder else document.name
    return f"{document.title} ({path})" if document.title not in ("", document.name) else path


def documents_named(text: str) -> list[Document]:
    """At most 20 documents that `text` names.

    It may be a name, title, path, number, public id, label, or a text from :func:`document_entry`.
    """
    text = text.replace("\0", "").strip()
    if found := _documents_named(text):
        return found
    title, path = "", text.removesuffix(")")
    for _ in range(text.endswith(")") and MAX_BRACKETS):
        before, bracket, path = path.partition(" (")
        title += before
        if not bracket:
            break
        if found := [each for each in _documents_named(path) if each.title == title]:
            return found
        title += bracket
    return []


def _documents_named(text: str) -> list[Document]:
    folder, _, name = text.rpartition("/")
    wanted = Q(name=text) | Q(title__iexact=text) | Q(folder=folder, name=name)
    if NUMBER.fullmatch(text):
        wanted |= Q(pk=int(text))
    if bounds := identifier_range(text):
        wanted |= Q(public_id__range=bounds)
    try:
        wanted |= Q(public_id=UUID(text))
    except ValueError:
        pass
    return list(Document.objects.filter(wanted).select_related("owner")[:DOCUMENTS_SHOWN])


def _access_reasons(user: User, document: Document) -> list[AccessReason]:
    """The entries that include this person, as if the account were active."""
    entries = document.access_list.entries.filter(pk__in=AccessEntry.including(user.pk)).select_related(
        "group"
    )
    grounds = set()
    for entry in entries:
        if entry.group:
            grounds.add(AccessReason("group", entry.group.name))
        elif entry.user_id:
            grounds.add(AccessReason("owner" if document.owner_id == entry.user_id else "person"))
        else:
            grounds.add(AccessReason("guests" if entry.guests else "everyone"))
    return sorted(grounds, key=lambda ground: (KINDS.index(ground.kind), ground.group))


def _why_not(user: User, document: Document) -> list[str]:
    """Why no entry includes this person: sentences that say who may read the document."""
    name = user.get_username()
    entries = list(document.access_list.entries.select_related("user", "group"))
    people = sorted(entry.user.get_username() for entry in entries if entry.user)
    groups = sorted(entry.group.name for entry in entries if entry.group)
    reasons = []
    if any(entry.user_id is None and entry.group_id is None for entry in entries):
        words = gettext("Everyone who signs in may read it, and {person} is a guest.")
        reasons.append(words.format(person=name))
    if groups:
        words = gettext("Members of {groups} may read it, and {person} is in none of these groups.")
        reasons.append(words.format(groups=_listed(groups), person=name))
    if people:
        words = gettext("It is shared with {people}, and not with {person}.")
        shared = words.format(people=_listed(people), person=name)
        owner = document.owner.get_username() if document.owner else ""
        added = gettext("{person} added it.").format(person=owner)
        reasons.append(f"{shared} {added}" if owner in people else shared)
    return reasons or [gettext("Nobody may read it: its access list is empty.")]


def _notes(user: User, document: Document, readable: bool) -> Iterable[str]:
    if document.part_of:
        yield gettext("It is part of {document} and has the same readers.").format(
            document=document.part_of.name
        )
    if document.status == Document.Status.FAILED:
        reason = in_words(document.reason) or gettext("no reason is known.")
        yield gettext("Reading it failed: {reason}").format(reason=reason)
    elif document.status in Document.UNFINISHED:
        yield gettext("Its state is “{state}”.").format(state=document.get_status_display())
    if not document.version:
        yield gettext("It has no passages yet, so no search or answer finds anything in it.")
    elif document.status != Document.Status.READY:
        yield gettext("The previous version remains in use.")
    if readable and user.is_guest and settings.LOGIN_REQUIRED:
        yield gettext("Guests are not admitted at present (CHATSITE_LOGIN_REQUIRED is 1).")
    if user.is_staff and any(user.has_perm(f"ingestion.{what}_document") for what in ("view", "change")):
        words = gettext("{person} can view it in the admin, regardless of its readers.")
        yield words.format(person=user.get_username())


def _listed(names: list[str]) -> str:
    more = gettext(" and %(count)s more") % {"count": len(names) - NAMES_SHOWN}
    return ", ".join(names[:NAMES_SHOWN]) + (more if len(names) > NAMES_SHOWN else "")
