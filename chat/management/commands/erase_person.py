"""`manage.py erase_person USER`: delete a person's account and data."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from chat.persons.erasure import ErasureRefused, count_data, erase, files_left_in_words
from chatsite.accounts.models import User
from chatsite.db.migration_state import demand_migrations


class Command(BaseCommand):
    help = "Delete an account and all data of its owner. The audit log keeps a number instead of the name."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", metavar="USER", help="The account's user name.")
        documents = parser.add_mutually_exclusive_group()
        documents.add_argument(
            "--documents-to",
            metavar="USER",
            help="Account that gets the documents that others can read, and the verified answers.",
        )
        documents.add_argument(
            "--delete-documents",
            action="store_true",
            help="Delete these documents and answers for everybody.",
        )
        parser.add_argument(
            "--yes",
            action="store_true",
            help="Erase the person; without this option, only list what would be deleted.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        demand_migrations()
        person = account(options["user"])
        if not options["yes"]:
            self.stdout.write(f"Would erase: {count_data(person)}. Nothing was erased; add --yes to erase.")
            return
        successor = account(options["documents_to"]) if options["documents_to"] else None
        try:
            had = erase(
                person, actor=None, documents_to=successor, delete_documents=options["delete_documents"]
            )
        except ErasureRefused as refused:
            raise CommandError(str(refused)) from None
        self.stdout.write(f"Erased: {had}.")
        if had.files_left:
            self.stdout.write(files_left_in_words(had.files_left))


def account(name: str) -> User:
    person = User.objects.filter(username=name.replace("\0", "")).first()
    if person is None:
        raise CommandError(f"There is no account named “{name}”.")
    return person
