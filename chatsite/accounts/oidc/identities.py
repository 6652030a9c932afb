"""From the claims of a token to an account here, with the groups that the provider says."""

import re
import secrets
import unicodedata

from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction
from django.db.models import Q

from chatsite.accounts.models import ExternalIdentity, GroupMapping, ManagedMembership, User

from .tokens import Claims

UNSAFE = re.compile(r"[^\w.@+-]+")
USERNAME_CHARACTERS = 100
NAME_CHARACTERS = 150


class AccountDisabled(Exception):
    """The provider knows them, but their account here is switched off."""


def user_for(claims: Claims) -> User:
    """The account of that person, made when they are seen for the first time. Raises AccountDisabled.

    A person is their provider's subject: no e-mail address and no name leads to an account that exists.
    """
    identity = _identity(claims) or _made(claims)
    if not identity.user.is_active:
        raise AccountDisabled
    _follow_groups(identity, claims)
    return identity.user


def _identity(claims: Claims) -> ExternalIdentity | None:
    found = ExternalIdentity.objects.filter(issuer=claims.issuer, subject=claims.subject)
    return found.select_related("user").first()


def _made(claims: Claims) -> ExternalIdentity:
    """Two first requests at once make one account: the second finds the first's."""
    for attempt in range(5):
        user = User(
            username=_username(claims, attempt),
            first_name=_name(claims.first_name),
            last_name=_name(claims.last_name),
        )
        user.set_unusable_password()
        try:
            with transaction.atomic():
                user.save()
                return ExternalIdentity.objects.create(
                    user=user, issuer=claims.issuer, subject=claims.subject
                )
        except IntegrityError:
            if known := _identity(claims):
                return known
    raise AccountDisabled


def _username(claims: Claims, attempt: int) -> str:
    """The name the provider prefers, with a random ending where somebody has it already."""
    name = UNSAFE.sub("-", unicodedata.normalize("NFKC", claims.username)).strip("-")[:USERNAME_CHARACTERS]
    if not name:
        return f"person-{secrets.token_hex(6)}"
    taken = attempt > 0 or User.objects.filter(username__iexact=name).exists()
    return f"{name}-{secrets.token_hex(4)}" if taken else name


def _name(text: str) -> str:
    return "".join(sign for sign in text if sign.isprintable()).strip()[:NAME_CHARACTERS]


def _follow_groups(identity: ExternalIdentity, claims: Claims) -> None:
    """Add the memberships the token gives, take away those an earlier one gave; those by hand stay."""
    wanted = _groups(claims)
    if wanted == _managed(identity):
        return
    with transaction.atomic():
        ExternalIdentity.objects.select_for_update(of=("self",)).get(pk=identity.pk)
        managed = _managed(identity)
        by_hand = set(identity.user.groups.exclude(pk__in=managed).values_list("pk", flat=True))
        gone, new = managed - wanted, wanted - managed - by_hand
        identity.user.groups.remove(*gone)
        identity.memberships.filter(group__in=gone).delete()
        identity.user.groups.add(*new)
        ManagedMembership.objects.bulk_create(
            ManagedMembership(identity=identity, group_id=group) for group in new
        )


def _managed(identity: ExternalIdentity) -> set[int]:
    return set(identity.memberships.values_list("group", flat=True))


def _groups(claims: Claims) -> set[int]:
    """Groups by the mapping; for a value without one, the group of that very name, where there is one."""
    if not claims.groups:
        return set()
    mapped = GroupMapping.objects.filter(issuer=claims.issuer, value__in=claims.groups)
    rows = list(mapped.values_list("value", "group"))
    named = claims.groups - {value for value, _ in rows}
    found = Group.objects.filter(Q(name__in=named)).values_list("pk", flat=True)
    return {group for _, group in rows} | set(found)
