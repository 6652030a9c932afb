"""Finds or creates the account for the claims of a token, and updates the account's groups."""

import hashlib
import re
import secrets
from collections import defaultdict
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import Group
from django.contrib.postgres.fields import ArrayField
from django.db import IntegrityError, transaction
from django.db.models import Exists, ExpressionWrapper, F, Max, OuterRef, Q, QuerySet, TextField

from chatsite.accounts.audit import record_by_provider
from chatsite.accounts.models import (
    ExternalIdentity,
    FormerIdentity,
    GroupMapping,
    ManagedMembership,
    User,
)
from chatsite.normal_form import normal_form

from .id_tokens import Claims

UNSAFE = re.compile(r"[^\w.@+-]+")
USERNAME_CHARACTERS = 100
NAME_CHARACTERS = 150


class AccountDisabled(Exception):
    """The provider accepts the person, but their account is disabled or cannot be created.

    In the second case, `user` is None.
    """

    def __init__(self, user: User | None) -> None:
        super().__init__("The account is disabled." if user else "No account could be created.")
        self.user = user


class ClaimMismatch(Exception):
    """The account of `user` is linked by the claim `oid`, but the site uses another claim.

    `oid` only counts with OIDC_SUBJECT_CLAIM=oid.
    """

    def __init__(self, user: User) -> None:
        super().__init__(
            "The account of this person is linked by the claim `oid`. If the provider assigns `oid` itself,"
            " as Entra ID does, set OIDC_SUBJECT_CLAIM=oid. Otherwise delete the external identity in the"
            " admin."
        )
        self.user = user


def user_for(claims: Claims) -> User:
    """The account of the person in the claims, created with their first token.

    Only the claim `sub` or `oid` (OIDC_SUBJECT_CLAIM) identifies a person; an e-mail address or a name never
    selects an existing account. Raises AccountDisabled, and ClaimMismatch if the account was linked by `oid`
    and another claim is configured.
    """
    identity = _identity(claims) or _linked_by_sub(claims) or _made(claims)
    if not identity.user.is_active:
        raise AccountDisabled(identity.user)
    _follow_groups(identity, claims)
    return identity.user


def _identity(claims: Claims) -> ExternalIdentity | None:
    """The person's stored identity that is linked by the configured claim.

    An identity that was stored without a claim is given that claim.
    """
    claim = settings.OIDC_SUBJECT_CLAIM
    found = ExternalIdentity.objects.filter(issuer=claims.issuer, subject=claims.subject)
    identity = found.filter(claim=claim).select_related("user").first()
    if identity is None and (identity := found.filter(claim="").select_related("user").first()):
        ExternalIdentity.objects.filter(pk=identity.pk, claim="").update(claim=claim)
    return identity


def _linked_by_sub(claims: Claims) -> ExternalIdentity | None:
    """The identity linked by `sub`, if the site now uses `oid`; it is relinked by `oid`.

    The reverse is not possible: every provider vouches for `sub`, but some let people choose claims such as
    `oid` themselves. If the site uses `sub` and the identity is linked by `oid`, this raises ClaimMismatch,
    so that no second account is created.
    """
    if settings.OIDC_SUBJECT_CLAIM == "oid":
        by_sub = ExternalIdentity.objects.filter(issuer=claims.issuer, subject=claims.subjects["sub"])
        identity = by_sub.filter(claim__in=["sub", ""]).select_related("user").first()
        if identity is not None:
            by_sub.filter(pk=identity.pk).update(subject=claims.subject, claim="oid")
        return identity
    by_oid = ExternalIdentity.objects.filter(issuer=claims.issuer, subject=claims.subjects.get("oid", ""))
    if linked := by_oid.filter(claim__in=["oid", ""]).select_related("user").first():
        raise ClaimMismatch(linked.user)
    return None


def _made(claims: Claims) -> ExternalIdentity:
    """Create the account; return its identity. A concurrent request gets the same identity."""
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
                record_by_provider(user, "Created the account at its first token")
                return ExternalIdentity.objects.create(
                    user=user,
                    issuer=claims.issuer,
                    subject=claims.subject,
                    claim=settings.OIDC_SUBJECT_CLAIM,
                    newest_token_at=_newest_of_former(claims),
                )
        except IntegrityError:
            if known := _identity(claims):
                return known
    raise AccountDisabled(None)


def _newest_of_former(claims: Claims) -> int:
    """When the newest token of the person's deleted identity was issued; 0 if there was none."""
    digests = [
        UUID(hashlib.md5(f"{claims.issuer}\n{subject}".encode(), usedforsecurity=False).hexdigest())
        for subject in claims.subjects.values()
    ]
    newest = FormerIdentity.objects.filter(pk__in=digests).aggregate(newest=Max("newest_token_at"))
    return newest["newest"] or 0


def _username(claims: Claims, attempt: int) -> str:
    """The suggested name, with a random suffix if taken; a random name if none is usable."""
    name = UNSAFE.sub("-", normal_form("NFKC", claims.username)).strip("-")[:USERNAME_CHARACTERS]
    if not name:
        return f"person-{secrets.token_hex(6)}"
    taken = attempt > 0 or User.objects.filter(username__iexact=name).exists()
    return f"{name}-{secrets.token_hex(4)}" if taken else name


def _name(text: str) -> str:
    return "".join(sign for sign in text if sign.isprintable()).strip()[:NAME_CHARACTERS]


def _follow_groups(identity: ExternalIdentity, claims: Claims) -> None:
    """Add the memberships that the token assigns; remove those assigned only by earlier tokens.

    Manual memberships stay. A token that was issued before the newest known one changes nothing, because it
    could restore a withdrawn group.
    """
    issued_at = claims.issued_at
    if issued_at < identity.newest_token_at:
        return
    wanted = _wanted(claims)
    if issued_at == identity.newest_token_at and wanted == _managed(identity):
        return
    with transaction.atomic():
        current = ExternalIdentity.objects.select_for_update(of=("self",)).get(pk=identity.pk)
        if issued_at < current.newest_token_at:
            return
        ExternalIdentity.objects.filter(pk=identity.pk).update(newest_token_at=issued_at)
        managed = _managed(identity)
        by_hand = set(identity.user.groups.exclude(pk__in=managed).values_list("pk", flat=True))
        gone, new = managed.keys() - wanted.keys(), wanted.keys() - managed.keys() - by_hand
        identity.user.groups.remove(*gone)
        identity.memberships.filter(group__in=gone).delete()
        identity.user.groups.add(*new)
        ManagedMembership.objects.bulk_create(
            [
                ManagedMembership(identity=identity, group_id=group, values=sorted(wanted[group]))
                for group in wanted.keys() - by_hand
            ],
            update_conflicts=True,
            unique_fields=["identity", "group"],
            update_fields=["values"],
        )
        for act, groups in (("Left", gone), ("Joined", new)):
            if groups:
                names = Group.objects.filter(pk__in=groups).order_by("name").values_list("name", flat=True)
                record_by_provider(identity.user, f"{act} {', '.join(names)} by a token")


def _wanted(claims: Claims) -> dict[int, set[str]]:
    """The groups that the token assigns, each with the values of the claim that assign it.

    With OIDC_GROUPS_BY_NAME, an unmapped value selects the group of that name.
    """
    mapped = GroupMapping.objects.filter(issuer=claims.issuer, value__in=claims.groups)
    rows = list(mapped.values_list("group", "value"))
    if settings.OIDC_GROUPS_BY_NAME:
        named = claims.groups - {value for _, value in rows}
        rows += Group.objects.filter(name__in=named).values_list("pk", "name")
    wanted: dict[int, set[str]] = defaultdict(set)
    for group, value in rows:
        wanted[group].add(value)
    return wanted


def _managed(identity: ExternalIdentity) -> dict[int, set[str]]:
    return {group: set(values) for group, values in identity.memberships.values_list("group", "values")}


def unlink(identities: QuerySet[ExternalIdentity]) -> None:
    """Delete identities, with the memberships that their tokens gave."""
    with transaction.atomic():
        given = ManagedMembership.objects.filter(identity__in=identities)
        for membership in given.select_related("identity__user", "group"):
            _end(membership, "the account was unlinked")
        identities.delete()


def _end(membership: ManagedMembership, reason: str) -> None:
    person = membership.identity.user
    person.groups.remove(membership.group_id)
    record_by_provider(person, f"Left {membership.group.name}: {reason}")


def drop_unmapped_memberships(changed: GroupMapping | None = None) -> int:
    """Remove memberships that came from a token and have no mapping now; return their number.

    Their mapping was changed or deleted, or they date from an earlier release, in which a value of the claim
    always selected the group of that name. They are removed without waiting for the person's next token;
    manual memberships stay. With OIDC_GROUPS_BY_NAME, a value still selects the group of that name. If the
    values of a membership are unknown, any mapping to the group explains it, except `changed`, the one that
    has just been changed.
    """
    mapping = GroupMapping.objects.filter(issuer=OuterRef("identity__issuer"), group=OuterRef("group"))
    values = ExpressionWrapper(OuterRef("values"), output_field=ArrayField(TextField()))
    by_values = Q(Exists(mapping.alias(known=values).filter(Q(known__contains=[F("value")]))))
    unknown = Q(values=[])
    if settings.OIDC_GROUPS_BY_NAME:
        explained = by_values | Q(values__contains=[F("group__name")]) | unknown
    else:
        others = mapping.exclude(pk=changed.pk) if changed else mapping
        explained = by_values | (unknown & Q(Exists(others)))
    with transaction.atomic():
        given = ManagedMembership.objects.exclude(explained)
        unmapped = list(given.select_related("identity__user", "group"))
        for membership in unmapped:
            _end(membership, "no mapping assigns the group")
        ManagedMembership.objects.filter(pk__in=[membership.pk for membership in unmapped]).delete()
    return len(unmapped)
