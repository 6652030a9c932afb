"""`manage.py create_service_account NAME --for INTEGRATION`: create an account for a program."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from chatsite.accounts.audit import record
from chatsite.accounts.models import AuditEntry, User
from chatsite.db.migration_state import demand_migrations


class Command(BaseCommand):
    help = (
        "Create an account for a program: without a password, with its own documents, quota and groups."
        " Create its keys with create_api_key."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="The user name.")
        parser.add_argument(
            "--for", required=True, dest="integration", help="The program that the account is for."
        )
        parser.add_argument(
            "--group", action="append", default=[], help="A group of the account; may be repeated."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        demand_migrations()
        groups = list(Group.objects.filter(name__in=options["group"]))
        if missing := set(options["group"]) - {group.name for group in groups}:
            raise CommandError(f"There is no group named {', '.join(sorted(missing))}.")
        account = User(username=options["name"], service_for=options["integration"].strip())
        account.set_unusable_password()
        try:
            account.full_clean(exclude=["password"])
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        if not account.is_service:
            raise CommandError("--for must name the program.")
        with transaction.atomic():
            account.save()
            account.groups.set(groups)
            record(AuditEntry.Action.SERVICE_CREATED, actor=None, person=account, subject=account.service_for)
        self.stdout.write(f"{account.username} belongs to {account.service_for}.")
