"""`manage.py explain_access USER DOCUMENT`: why somebody can or cannot read a document."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from chatsite.accounts.audit import record_before
from chatsite.accounts.models import AuditEntry
from chatsite.db.migration_state import demand_migrations
from ingestion.access.explain import (
    documents_named,
    explain,
    people_named,
)


class Command(BaseCommand):
    help = "Explain why an account can or cannot read a document. Each use is recorded in the audit log."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", metavar="USER", help="User name, or first and last name.")
        parser.add_argument(
            "document", metavar="DOCUMENT", help="Its title, file name, number, public id or label."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        demand_migrations()
        people = people_named(options["user"])
        if len(people) != 1:
            many = "are several accounts" if people else "is no account"
            raise CommandError(f"There {many} named “{options['user']}”.")
        [user] = people
        found = documents_named(options["document"])
        if not found:
            raise CommandError(f"There is no document “{options['document']}”.")
        for document in found:
            subject = document.name_for_audit
            record_before(AuditEntry.Action.EXPLAIN_ACCESS, actor=None, person=user, subject=subject)
            explanation = explain(user, document)
            where = f"  {document.folder}/" if document.folder else "  "
            self.stdout.write(explanation.verdict)
            self.stdout.write(f"{where}{document.name}, {document.public_id}")
            for line in (*explanation.reasons, *explanation.notes):
                self.stdout.write(f"- {line}")
