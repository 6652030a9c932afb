"""Who may administer whom: nobody hands out, or takes over, rights that they do not have themselves.

Superusers administer everybody. Other staff, whatever permissions of the admin they hold, administer only
people whose permissions and groups are among their own: resetting the password of somebody with more rights,
or adding a person to a group, would otherwise amount to having those rights.
"""

from django.contrib.auth.models import AnonymousUser, Group, Permission
from django.contrib.auth.models import User as DjangoUser
from django.db.models import Exists, OuterRef, Q, QuerySet

from .models import User

Actor = User | DjangoUser | AnonymousUser  # `request.user`, as the stubs know it


def permissions_of(person: Actor) -> QuerySet[Permission]:
    """The permissions of a person and of their groups, also while the account is switched off."""
    return Permission.objects.filter(Q(user=person.pk) | Q(group__user=person.pk)).distinct()


def grantable_permissions(actor: Actor) -> QuerySet[Permission]:
    """The permissions that `actor` may give to others."""
    if actor.is_superuser:
        return Permission.objects.all()
    return Permission.objects.filter(pk__in=permissions_of(actor).values("pk"))


def grantable_groups(actor: Actor) -> QuerySet[Group]:
    """The groups that `actor` may add others to: for other staff than superusers, their own."""
    if actor.is_superuser:
        return Group.objects.all()
    return Group.objects.filter(user=actor.pk)


def administered_by(actor: Actor) -> QuerySet[User]:
    """The people without a right that `actor` lacks."""
    if actor.is_superuser:
        return User.objects.all()
    memberships = User.groups.through.objects.filter(user_id=OuterRef("pk"))
    own = User.user_permissions.through.objects.filter(user_id=OuterRef("pk"))
    # Their groups are the actor's, and so are those groups' permissions.
    return User.objects.filter(
        ~Exists(memberships.exclude(group__in=grantable_groups(actor).values("pk"))),
        ~Exists(own.exclude(permission__in=grantable_permissions(actor).values("pk"))),
        is_superuser=False,
    )


def may_administer(actor: Actor, person: User) -> bool:
    return administered_by(actor).filter(pk=person.pk).exists()


def may_administer_group(actor: Actor, group: Group) -> bool:
    """Whether changing the group, its name and its permissions, is within what `actor` has."""
    return grantable_groups(actor).filter(pk=group.pk).exists()
