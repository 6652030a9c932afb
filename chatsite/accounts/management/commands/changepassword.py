"""`manage.py changepassword`: Django's command, which can also revoke the API keys."""

import getpass
from typing import Any

from django.contrib.auth.management.commands import changepassword
from django.core.management.base import CommandParser

from chatsite.accounts.audit import record
from chatsite.accounts.models import ApiKey, AuditEntry, User
from chatsite.db.migration_state import demand_migrations


class Command(changepassword.Command):
    requires_migrations_checks = False  # handle() demands the migrations
    help = "Change a user's password. Their sessions end; API keys stay valid unless --revoke-keys is given."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--revoke-keys", action="store_true", help="Revoke the user's API keys too.")

    def handle(self, *args: Any, **options: Any) -> str:
        demand_migrations()
        options["username"] = options["username"] or getpass.getuser()
        output = str(super().handle(*args, **options))
        person = User.objects.get(username=options["username"])
        record(AuditEntry.Action.PASSWORD_SET, actor=None, person=person)
        keys = ApiKey.objects.owned_by_user(person.pk).usable()
        if options["revoke_keys"]:
            count = keys.revoke()
            record(AuditEntry.Action.KEYS_REVOKED, actor=None, person=person, subject=f"API keys: {count}")
            return f"{output}\nAPI keys revoked: {count}."
        if count := keys.count():
            return f"{output}\nAPI keys that stay valid: {count} (--revoke-keys revokes them)."
        return output
