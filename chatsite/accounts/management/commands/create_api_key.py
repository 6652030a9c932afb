"""`manage.py create_api_key USERNAME`: a key for that user's programs, printed once."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from chatsite.accounts.api_keys import DEFAULT_SCOPES, MAX_ADDRESSES, Scope, network_of
from chatsite.accounts.audit import record
from chatsite.accounts.models import ApiKey, AuditEntry, User
from chatsite.db.migration_state import demand_migrations

MAX_DAYS = 36_500


class Command(BaseCommand):
    help = "Create an API key and print only the key. It is stored as a hash and never shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--name", default="", help="What the key is for.")
        parser.add_argument(
            "--days",
            type=int,
            help="Days for which the key is valid; 0: without limit. By default CHATSITE_API_KEY_DAYS.",
        )

        parser.add_argument(
            "--scope",
            action="append",
            choices=Scope.values,
            help=f"What the key may be used for; may be repeated. By default {', '.join(DEFAULT_SCOPES)}.",
        )

        parser.add_argument(
            "--address",
            action="append",
            default=[],
            help="An address or a network (192.0.2.0/24) from which the key may be used; may be repeated.",
        )
        parser.add_argument(
            "--acts-for-others",
            action="store_true",
            help="Let the program act with the rights of a person whom it names in X-On-Behalf-Of.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        demand_migrations()
        user = User.objects.filter(username=options["username"]).first()
        if user is None:
            raise CommandError(f"There is no account named “{options['username']}”.")
        if not user.is_active:
            raise CommandError(f"The account “{user.username}” is disabled.")
        longest = ApiKey._meta.get_field("name").max_length
        if len(options["name"]) > (longest or 0):
            raise CommandError(f"The name of a key has at most {longest} characters.")
        if options["days"] is not None and not 0 <= options["days"] <= MAX_DAYS:
            raise CommandError(f"--days must be between 0 and {MAX_DAYS}.")
        scopes = options["scope"] or DEFAULT_SCOPES
        if len(options["address"]) > MAX_ADDRESSES:
            raise CommandError(f"A key has at most {MAX_ADDRESSES} addresses.")
        for address in options["address"]:
            try:
                network_of(address)
            except ValueError as error:
                raise CommandError(f"--address: {error}") from None
        with transaction.atomic():
            key, secret = ApiKey.objects.issue(
                user,
                options["name"],
                options["days"],
                scopes,
                addresses=options["address"],
                acts_for_others=options["acts_for_others"],
            )
            others = ", acts for others" if key.acts_for_others else ""
            record(AuditEntry.Action.KEY_MADE, actor=None, person=user, subject=f"{key}{others}")
        self.stdout.write(secret)
        # Not on standard output, from which programs read the key.
        ends = f"expires on {key.expires_at:%Y-%m-%d}" if key.expires_at else "does not expire"
        self.stderr.write(f"The key {ends}.")
