"""Command-line flags of commands that add documents: readers, owner and category."""

from argparse import ArgumentParser
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group
from django.core.management.base import CommandError

from chatsite.accounts.models import User
from ingestion.access.lists import Audience, find_named
from ingestion.file_names import category_name


@dataclass(frozen=True)
class DocumentOptions:
    """Owner, readers and category of the added documents.

    `audience` is None if no flag names readers.
    """

    owner: User | None
    audience: Audience | None
    category: str


def add_arguments(parser: ArgumentParser) -> None:
    """Add the flags that `parse` reads."""
    parser.add_argument(
        "--everyone", action="store_true", help="Everyone who signs in may read the documents."
    )
    parser.add_argument(
        "--guests", action="store_true", help="Everyone who signs in and guests may read the documents."
    )
    parser.add_argument(
        "--user",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="These people may read the documents.",
    )
    parser.add_argument(
        "--group",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="These groups may read the documents.",
    )
    parser.add_argument("--owner", metavar="NAME", help="Owner of the documents, who may always read them.")
    parser.add_argument("--category", default="", help="A category for all of the documents.")


def parse(options: dict[str, Any]) -> DocumentOptions:
    """Look up the accounts and groups that the flags name.

    Raises CommandError if an account or a group does not exist, or if the flags contradict each other.
    """
    users = _named(User.objects.all(), "username", options["user"], "user")
    groups = _named(Group.objects.all(), "name", options["group"], "group")
    owners = _named(User.objects.all(), "username", [options["owner"]] if options["owner"] else [], "user")
    everyone = options["everyone"] or options["guests"]
    if everyone and (users or groups):
        raise CommandError("--everyone already includes all users and groups: leave out --user and --group.")
    audience = Audience(
        everyone=everyone,
        guests=options["guests"],
        user_ids=frozenset(user.pk for user in users),
        group_ids=frozenset(group.pk for group in groups),
    )
    named = everyone or users or groups
    return DocumentOptions(
        owners[0] if owners else None, audience if named else None, category_name(options["category"])
    )


def _named(rows: Any, field: str, names: list[str], kind: str) -> list[Any]:
    found = find_named(rows, field, names)
    missing = [name for name in names if name not in found]
    if missing:
        raise CommandError(f"There is no {kind} named {', '.join(missing)}.")
    return [found[name] for name in names]
