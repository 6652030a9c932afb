"""The chain of hashes over the audit log, and the log for other programs."""

import csv
import errno
import json
import os
from datetime import timedelta
from importlib import import_module
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch
from uuid import uuid4

from django.apps import apps
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.utils import IntegrityError
from django.test import TestCase, override_settings
from django.utils import timezone

from chat.persons.erasure import erase
from chatsite.accounts.audit import audit_export, chain, record
from chatsite.accounts.management.commands import audit
from chatsite.accounts.models import AuditEntry, AuditSeal, User
from ingestion.tests.factories import make_user

SWITCH = """
    ALTER TABLE accounts_auditentry {0} TRIGGER is_final;
    ALTER TABLE accounts_auditseal {0} TRIGGER is_final;
"""


def verified(*arguments):
    out = StringIO()
    call_command("audit", "verify", *arguments, stdout=out)
    return out.getvalue()


def tamper(statement, *values):
    """Change the tables behind the triggers' back, as who owns the database can."""
    with connection.cursor() as cursor:
        cursor.execute(SWITCH.format("DISABLE"))
        cursor.execute(statement, values)
        cursor.execute(SWITCH.format("ENABLE"))


class OldSubjectsTests(TestCase):
    def test_erasing_removes_only_account_names_from_older_entries(self):
        root, ann, erin = make_user("root"), make_user("ann"), make_user("erin")
        make_user("HR")
        Group.objects.create(name="HR")
        document = f"ann ({uuid4()})"
        old = [
            ("rights_changed", f"{document}: Nobody → HR, ann, erin and 2 more"),
            ("rights_changed", f"{document}: Everyone who signs in → ann, HR"),
            ("members_changed", f"project {uuid4()}: erin → Nobody"),
            ("document_changed", f"Handed over {document} to ann"),
            ("person_erased", "person 4: 1 conversation; handed over to erin"),
            ("search_as", "ann"),
        ]
        for action, subject in old:
            record(AuditEntry.Action(action), actor=root, subject=subject)
        make_user("Everyone")  # who was not there yet
        chain.seal_new()
        migration = import_module("chatsite.accounts.migrations.0036_names_in_old_subjects")
        with connection.cursor() as cursor:
            migration.mark(apps, cursor)
        self.assertEqual(chain.verify().anonymized, [])
        for person in (ann, erin, User.objects.get(username="HR"), User.objects.get(username="Everyone")):
            person.number = f"person {person.pk}"
            erase(person, actor=root)
        entries = AuditEntry.objects.filter(pk__lte=AuditSeal.objects.latest("position").entry).order_by("pk")
        self.assertEqual(
            [entry.subject for entry in entries][: len(old)],
            [
                f"{document}: Nobody → HR, {ann.number}, {erin.number} and 2 more",
                f"{document}: Everyone who signs in → {ann.number}, HR",
                old[2][1].replace("erin", erin.number),
                f"Handed over {document} to {ann.number}",
                f"person 4: 1 conversation; handed over to {erin.number}",
                "ann",
            ],
        )
        self.assertEqual(len(chain.verify().anonymized), 5)


class ChainTests(TestCase):
    def setUp(self):
        self.ada, self.ben = make_user("ada"), make_user("ben")
        for number in range(5):
            record(AuditEntry.Action.SEARCH_AS, actor=self.ada, person=self.ben, subject=f"Question {number}")
        chain.seal_new()
        self.entries = list(AuditEntry.objects.order_by("pk"))

    def broken(self, *arguments):
        with self.assertRaises(CommandError) as raised:
            verified(*arguments)
        return str(raised.exception)

    def test_an_untouched_log_is_verified(self):
        self.assertIn("5 entries are unchanged", verified())
        self.assertEqual(
            list(AuditSeal.objects.order_by("pk").values_list("position", flat=True)), [1, 2, 3, 4, 5]
        )
        self.assertEqual(chain.seal_new(), 0)

    def test_the_first_changed_entry_is_named(self):
        third = self.entries[2]
        for statement in (
            "UPDATE accounts_auditentry SET subject = 'Another question' WHERE id = %s",
            "UPDATE accounts_auditentry SET actor = 'ben' WHERE id = %s",
            "UPDATE accounts_auditentry SET actor_id = 1000000 WHERE id = %s",
            "UPDATE accounts_auditentry SET created_at = created_at - interval '1 hour' WHERE id = %s",
            "DELETE FROM accounts_auditentry WHERE id = %s",
            "DELETE FROM accounts_auditseal WHERE entry = %s",
            "UPDATE accounts_auditseal SET hash = repeat('a', 64) WHERE entry = %s",
        ):
            with self.subTest(statement), transaction.atomic():
                tamper(statement, third.pk)
                named = third.pk if "DELETE FROM accounts_auditseal" not in statement else self.entries[3].pk
                self.assertIn(f"Entry {named} ", chain.verify().broken)
                self.assertIn("2 entries before it", self.broken())
                transaction.set_rollback(True)

    def test_the_database_refuses_to_change_a_seal(self):
        for change in (AuditSeal.objects.all().delete, lambda: AuditSeal.objects.update(salt="")):
            with self.assertRaises(IntegrityError), transaction.atomic():
                change()

    def test_a_truncated_or_rewritten_chain_lacks_the_noted_hash(self):
        noted = chain.verify().newest
        self.assertIn(noted, verified("--expect", noted))
        tamper("DELETE FROM accounts_auditseal WHERE position > 3")
        tamper("DELETE FROM accounts_auditentry WHERE id > %s", self.entries[2].pk)
        self.assertIn("3 entries", verified())
        self.assertIn("is not in the chain", self.broken("--expect", noted))

    def test_an_entry_that_is_committed_late_is_sealed_after_those_before_it(self):
        number = self.entries[-1].pk + 50
        tamper("SELECT setval('accounts_auditentry_id_seq', %s, false)", number)
        record(AuditEntry.Action.SEARCH_AS, actor=self.ada)
        chain.seal_new()
        tamper("SELECT setval('accounts_auditentry_id_seq', %s, false)", number - 10)
        record(AuditEntry.Action.SEARCH_AS, actor=self.ben)
        self.assertEqual(chain.seal_new(), 1)
        self.assertEqual(AuditSeal.objects.order_by("-pk").first().entry, number - 10)
        self.assertIn("7 entries", verified())

    def test_an_entry_that_was_added_too_late_to_be_sealed_is_named(self):
        first = self.entries[0]
        added = first.pk - 1
        with patch.object(chain, "LATE", 3):
            tamper(
                "INSERT INTO accounts_auditentry SELECT (jsonb_populate_record(entry, %s)).*"
                " FROM accounts_auditentry entry WHERE id = %s",
                json.dumps({"id": added}),
                first.pk,
            )
            self.assertIn(f"Entry {added} has no seal", self.broken())
        self.assertIn("6 entries are unchanged", verified())  # sealed now

    def test_erasing_a_person_keeps_the_chain_valid_and_no_digest_of_the_name(self):
        erase(self.ben, actor=self.ada)
        chain.seal_new()
        first, last = self.entries[0].pk, self.entries[-1].pk
        self.assertIn("5 of them named people who were erased.", verified())
        self.assertIn(f"can no longer be verified: {first}–{last}.", verified())
        self.assertEqual(set(AuditSeal.objects.filter(position__lte=5).values_list("salt", flat=True)), {""})

    def test_old_entries_are_removed_and_the_rest_can_be_verified(self):
        old = timezone.now() - timedelta(days=40)
        tamper("DELETE FROM accounts_auditseal")
        tamper("UPDATE accounts_auditentry SET created_at = %s WHERE id <= %s", old, self.entries[2].pk)
        chain.seal_new()
        noted = chain.verify().newest
        with override_settings(AUDIT_DAYS=30):
            call_command("audit", "trim", stdout=StringIO())
        kept = [self.entries[3].pk, self.entries[4].pk]
        self.assertEqual(list(AuditEntry.objects.order_by("pk").values_list("pk", flat=True))[:2], kept)
        self.assertIn("3 entries are unchanged", verified("--expect", noted))
        self.assertEqual(chain.trim(30), 0)
        tamper("DELETE FROM accounts_auditentry WHERE action = 'log_trimmed'")
        self.assertIn("is missing, and so is everything before it", self.broken())

    def test_nothing_is_removed_without_a_configured_period(self):
        with self.assertRaises(CommandError):
            call_command("audit", "trim")


class ExportTests(TestCase):
    def setUp(self):
        self.ada, self.ben = make_user("ada"), make_user("ben")
        for action in AuditEntry.Action:
            record(action, actor=self.ada, person=self.ben, subject="=1+1")

    def exported(self, name, *arguments):
        with TemporaryDirectory() as folder:
            path = Path(folder) / name
            call_command("audit", "export", str(path), *arguments, stderr=StringIO())
            self.assertEqual(path.stat().st_mode & 0o777, 0o600)
            return path.read_text(encoding="utf-8")

    def test_every_action_has_a_class(self):
        self.assertEqual(set(audit_export.CLASSES), set(AuditEntry.Action))

    def test_each_line_is_an_event_with_the_members_that_its_class_requires(self):
        events = [json.loads(line) for line in self.exported("log.jsonl").splitlines()]
        self.assertEqual(len(events), len(AuditEntry.Action) + 1)  # and this export
        required = {3001: "user", 3002: "user", 3004: "entity", 6001: "web_resources"}
        for event in events:
            self.assertEqual(event["type_uid"], 100 * event["class_uid"] + event["activity_id"])
            self.assertEqual(event["category_uid"], event["class_uid"] // 1000)
            category = {3: "Identity & Access Management", 6: "Application Activity"}[event["category_uid"]]
            self.assertEqual(event["category_name"], category)
            self.assertIn(required[event["class_uid"]], event)
            self.assertEqual(event["metadata"]["version"], "1.5.0")
        refused = next(each for each in events if each["unmapped"]["action"] == "sign_in_refused")
        self.assertEqual((refused["class_uid"], refused["status_id"]), (3002, 2))
        self.assertEqual(len(events[0]["unmapped"]["hash"]), 64)

    def test_rows_contain_the_chain_and_no_formula(self):
        rows = list(csv.DictReader(StringIO(self.exported("log.csv", "--format", "csv"))))
        self.assertEqual((rows[0]["actor"], rows[0]["person"], rows[0]["subject"]), ("ada", "ben", "'=1+1"))
        self.assertEqual([row["position"] for row in rows[:3]], ["1", "2", "3"])

    def test_of_an_export_onto_a_full_disk_no_part_is_kept(self):
        def full(target, *days):
            target.write("{}")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with TemporaryDirectory() as folder:
            path = Path(folder, "log.jsonl")
            with (
                patch.dict(audit.WRITERS, {"jsonl": full}),
                self.assertRaisesMessage(CommandError, f"{path} cannot be written: No space left on device."),
            ):
                call_command("audit", "export", str(path))
            self.assertEqual(list(Path(folder).iterdir()), [])

    def test_only_the_requested_days_are_exported_and_the_export_is_logged(self):
        tomorrow = (timezone.localdate() + timedelta(days=1)).isoformat()
        self.assertEqual(self.exported("log.jsonl", "--since", tomorrow), "")
        self.assertEqual(AuditEntry.objects.filter(action="log_exported").count(), 2)

    def test_no_file_is_overwritten(self):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "log.csv"
            path.write_text("kept")
            with self.assertRaises(CommandError):
                call_command("audit", "export", str(path))
            self.assertEqual(path.read_text(), "kept")
