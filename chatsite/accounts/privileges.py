"""Who may administer whom.

Nobody can grant, or gain, rights that they do not have themselves. Superusers administer everybody. Other
staff, whatever their permissions, administer only people whose permissions and groups are a subset of their
own: otherwise they could gain rights by resetting somebody's password or by joining a group.
"""

from django.contrib.auth.models import AnonymousUser, Group, Permission
from django.contrib.auth.models import User as DjangoUser
from django.db.models import Exists, OuterRef, Q, QuerySet

from .models import User

Actor = User | DjangoUser | AnonymousUser  # the types of `request.user` in the stubs


def permissions_of(person: Actor) -> QuerySet[Permission]:
    """The permissions of a person and of their groups, even if the account is disabled."""
    return Permission.objects.filter(Q(user=person.pk) | Q(group__user=person.pk)).distinct()


def grantable_permissions(actor: Actor) -> QuerySet[Permission]:
    """The permissions that `actor` may give to others."""
    if actor.is_superuser:
        return Permission.objects.all()
    return Permission.objects.filter(pk__in=permissions_of(actor).values("pk"))


def grantable_groups(actor: Actor) -> QuerySet[Group]:
    """The groups to which `actor` may add others: for staff who are not superusers, their own."""
    if actor.is_superuser:
        return Group.objects.all()
    return Group.objects.filter(user=actor.pk)


def administered_by(actor: Actor) -> QuerySet[User]:
    """The people who have no right that `actor` lacks, and whose accounts `actor` may therefore change."""
    if actor.is_superuser:
        return User.objects.all()
    memberships = User.groups.through.objects.filter(user_id=OuterRef("pk"))
    own = User.user_permissions.through.objects.filter(user_id=OuterRef("pk"))
    # The groups' permissions need no check: the actor is in these groups, too.
    return User.objects.filter(
        ~Exists(memberships.exclude(group__in=grantable_groups(actor).values("pk"))),
        ~Exists(own.exclude(permission__in=grantable_permissions(actor).values("pk"))),
        is_superuser=False,
    )


def may_administer(actor: Actor, person: User) -> bool:
    return administered_by(actor).filter(pk=person.pk).exists()


def may_administer_group(actor: Actor, group: Group) -> bool:
    """Whether `actor` is in the group or a superuser, and so may change or delete it."""
    return grantable_groups(actor).filter(pk=group.pk).exists()
