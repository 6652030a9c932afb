"""Groups and people that an API request names.

They are readers of a share, or members of a project.
"""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import Group
from django.db.models import Q
from django.utils.translation import gettext
from rest_framework import serializers

from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal
from chatsite.http.problem_details import ProblemDetails
from chatsite.http.strict_fields import BoundedListField, StrictCharField, StrictSerializer
from ingestion.access.lists import Audience

MAX_READERS = 200


class NamedReadersSerializer(StrictSerializer):
    """Groups and people by their names."""

    groups = BoundedListField(
        child=StrictCharField(max_length=150),
        default=list,
        max_length=MAX_READERS,
        help_text="Names of groups that the caller belongs to.",
    )
    people = BoundedListField(
        child=StrictCharField(max_length=150),
        default=list,
        max_length=MAX_READERS,
        help_text="User names.",
    )


class MembersSerializer(serializers.Serializer[Any]):
    """Groups and people by their names, in order."""

    groups = serializers.ListField(child=serializers.CharField())
    people = serializers.ListField(child=serializers.CharField(), help_text="User names.")


def audience_of_names(
    principal: Principal, groups: Iterable[str], people: Iterable[str], current: Audience | None = None
) -> Audience:
    """The audience of the named groups and people.

    Accepts the caller's groups, active accounts except guests, and readers in `current`. Raises
    ProblemDetails for any other name.
    """
    current = current or Audience()
    offered = Group.objects.filter(Q(user=principal.user_id) | Q(pk__in=current.group_ids), name__in=groups)
    found = dict(offered.values_list("name", "pk"))
    if missing := sorted(set(groups) - found.keys()):
        raise ProblemDetails(
            gettext("You belong to no group named {name}.").format(name=missing[0]), "groups"
        )
    active = User.objects.filter(Q(is_active=True) | Q(pk__in=current.user_ids), guest_until=None)
    accounts = dict(active.filter(username__in=people).values_list("username", "pk"))
    if missing := sorted(set(people) - accounts.keys()):
        raise ProblemDetails(gettext("There is no account named {name}.").format(name=missing[0]), "people")
    return Audience(user_ids=frozenset(accounts.values()), group_ids=frozenset(found.values()))


def names_in(audience: Audience) -> dict[str, list[str]]:
    """The names of an audience, as MembersSerializer shows them."""
    groups = Group.objects.filter(pk__in=audience.group_ids)
    people = User.objects.filter(pk__in=audience.user_ids)
    return {
        "groups": sorted(groups.values_list("name", flat=True)),
        "people": sorted(people.values_list("username", flat=True)),
    }
