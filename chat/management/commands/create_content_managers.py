"""`manage.py create_content_managers [PERSON …]`: create the content managers' group, add members."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import Group, Permission
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from chatsite.accounts.admin_base.audited_admin import permissions_of, rights_of
from chatsite.accounts.audit import record
from chatsite.accounts.models import AuditEntry, User
from chatsite.db.migration_state import demand_migrations

NAME = "Content managers"
NAME_CHARACTERS = 150
EVERYTHING = ("add", "change", "delete", "view")
# Permissions by app and model; docs/knowledge.md lists them in the admin's words.
RIGHTS = {
    ("chat", "verifiedanswer"): (*EVERYTHING, "view_unanswered"),
    ("chat", "verifiedquestion"): EVERYTHING,
    ("chat", "verifiedcitation"): EVERYTHING,
    ("chat", "proofquestion"): EVERYTHING,
    ("chat", "proofrun"): ("add", "delete", "view"),
    ("chat", "startingquestion"): EVERYTHING,
    ("chat", "dayfigures"): ("view_figures",),
    ("ingestion", "houseword"): EVERYTHING,
    ("ingestion", "document"): EVERYTHING,
    ("accounts", "user"): ("view",),
    ("auth", "group"): ("view",),
    ("accounts", "auditentry"): ("view", "view_as_others"),
}


class Command(BaseCommand):
    help = (
        "Create a group whose members manage all content in the admin, or add missing permissions to it."
        " Each PERSON becomes a member of it, and staff."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("person", nargs="*", metavar="PERSON", help="User name of a member.")
        parser.add_argument("--group", default=NAME, help=f"The group’s name; the default is “{NAME}”.")

    def handle(self, *args: Any, **options: Any) -> None:
        demand_migrations()
        people = list(User.objects.filter(username__in=options["person"], guest_until=None, service_for=""))
        if missing := set(options["person"]) - {person.username for person in people}:
            raise CommandError(f"There is no account named {', '.join(sorted(missing))}.")
        name = options["group"].strip()
        if not 0 < len(name) <= NAME_CHARACTERS:
            raise CommandError(f"The name of a group must have 1 to {NAME_CHARACTERS} characters.")
        with transaction.atomic():
            group, _ = Group.objects.get_or_create(name=name)
            before = permissions_of(group)
            group.permissions.add(*content_permissions())
            if permissions_of(group) != before:
                subject = f"{group.name}: {permissions_of(group)}"
                record(AuditEntry.Action.GROUP_CHANGED, actor=None, subject=subject)
            for person in people:
                self._join(person, group)
        members = group.user_set.count()
        self.stdout.write(f"“{group.name}” has the rights of content managers. Members: {members}.")

    def _join(self, person: User, group: Group) -> None:
        before = rights_of(person)
        person.is_staff = True
        person.save(update_fields=["is_staff"])
        person.groups.add(group)
        if rights_of(person) != before:
            subject = f"{before} → {rights_of(person)}"
            record(AuditEntry.Action.ACCOUNT_CHANGED, actor=None, person=person, subject=subject)


def content_permissions() -> list[Permission]:
    """The permissions of RIGHTS.

    The codenames of Django's four default permissions end with the model's name; others do not.
    """
    return [
        Permission.objects.get(
            content_type__app_label=app, codename=f"{act}_{model}" if act in EVERYTHING else act
        )
        for (app, model), acts in RIGHTS.items()
        for act in acts
    ]
