"""The audit log: sign-ins, and actions on accounts, rights, others' content or settings."""

import getpass
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.http import HttpRequest

from chatsite import logs
from chatsite.accounts.models import (
    AuditEntry,
    User,
)

logger = logging.getLogger(__name__)

SUBJECT_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class NamedPerson:
    """The user name of an account in the subject of an entry.

    Erasing the account replaces just this name in entries by and about others.
    """

    person_id: int
    name: str


Subject = str | Sequence[str | NamedPerson]  # one text, possibly in parts


def named(person: User) -> NamedPerson:
    return NamedPerson(person.pk, person.get_username())


def record(
    action: AuditEntry.Action, *, actor: User | None, person: User | None = None, subject: Subject = ""
) -> None:
    """Record one action in the caller's transaction.

    `actor` is the person who acted (None for a command), `person` the one affected, and `subject` what the
    action was about. Names are copied, so that the log still names deleted accounts. Names of other accounts
    in the subject must be NamedPerson objects, because erasing a person does not search texts for names:
    a user name may also be a word of a title.
    """
    text, places = "", []
    for part in [subject] if isinstance(subject, str) else subject:
        words = part if isinstance(part, str) else part.name
        start, text = len(text), f"{text}{words}".replace("\0", " ")[:SUBJECT_CHARACTERS]
        if isinstance(part, NamedPerson) and start < len(text):
            places.append({"person": part.person_id, "start": start, "end": len(text)})
    if actor:
        actor_name = actor.get_username()
    else:
        try:
            operator = getpass.getuser()
        except (OSError, KeyError):
            operator = "an account without a name"
        actor_name = f"command of {operator}"
    AuditEntry.objects.create(
        action=action,
        actor_id=actor.pk if actor else None,
        actor=actor_name,
        person_id=person.pk if person else None,
        person=person.get_username() if person else "",
        subject=text,
        named=places,
        request_id=logs.request_id.get(),
    )


def record_refused_sign_in(username: str, address: str, reason: str) -> None:
    """Record a refused sign-in in the server's log and the audit log, with the account.

    A name without an account is not recorded: people type passwords into that field by mistake.
    """
    person = User.objects.filter(username=username).first()
    record_refusal(person, address, reason, unknown="a name without an account")


def record_refusal(person: User | None, address: str, reason: str, *, unknown: str) -> None:
    """Record in both logs that somebody could not sign in; `unknown` stands for an unknown account."""
    logger.warning(
        "Sign-in refused: %s, for %s, from %s",
        reason,
        f"“{person.username}”" if person else unknown,
        address or "an unknown address",
    )
    AuditEntry.objects.create(
        action=AuditEntry.Action.SIGN_IN_REFUSED,
        actor="somebody who did not sign in",
        person_id=person.pk if person else None,
        person=person.get_username() if person else "",
        subject=f"{reason}; from {address or 'an unknown address'}",
        request_id=logs.request_id.get(),
    )


def record_wrong_password(user: User, address: str, reason: str) -> None:
    """Record in both logs that somebody who is signed in did not know the account's current password."""
    place = address or "an unknown address"
    logger.warning("New password refused: %s, for “%s”, from %s", reason, user.get_username(), place)
    subject = f"{reason}, to set a new one; from {place}"
    record(AuditEntry.Action.SIGN_IN_REFUSED, actor=user, person=user, subject=subject)


def record_by_provider(person: User, subject: str) -> None:
    """Record what a token of the sign-in provider changed in an account, in the caller's transaction."""
    AuditEntry.objects.create(
        action=AuditEntry.Action.ACCOUNT_CHANGED,
        actor="the sign-in provider",
        person_id=person.pk,
        person=person.get_username(),
        subject=subject[:SUBJECT_CHARACTERS],
        request_id=logs.request_id.get(),
    )


def record_sign_in(user: User, address: str, way: str) -> None:
    """Record that somebody has signed in."""
    record(
        AuditEntry.Action.SIGN_IN,
        actor=user,
        person=user,
        subject=f"{way}; from {address or 'an unknown address'}",
    )


def record_sign_out(request: HttpRequest) -> None:
    """Record that the caller ends their session, unless they are a guest or not signed in."""
    if isinstance(request.user, User) and not request.user.is_guest:
        record(AuditEntry.Action.SIGN_OUT, actor=request.user, person=request.user)


def record_before(
    action: AuditEntry.Action, *, actor: User | None, person: User | None = None, subject: Subject = ""
) -> None:
    """Like :func:`record`, but commits the entry, so that it exists whatever happens afterwards."""
    with transaction.atomic(durable=True):
        record(action, actor=actor, person=person, subject=subject)
