"""How long conversations, feedback and files are kept, by the rules of the admin."""

import io
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db.models import ProtectedError
from django.test import TestCase
from django.utils import timezone

from chat.models import Retention
from chat.retention_rules import apply
from chat.tests.conversations import answered
from chatsite.accounts.models import AuditEntry, User
from history import recording
from history.models import Conversation, Feedback
from ingestion.models import Document, ExternalId, SourceFile
from ingestion.tests.factories import make_document, make_user

PAGE = "/admin/chat/retention/"


@pytest.mark.slow
class RetentionTests(TestCase):
    def setUp(self):
        self.ann = make_user("ann", groups=["Crew"])
        self.bob = make_user("bob", groups=["Crew", "Legal"])
        self.eve = make_user("eve")
        self.crew, self.legal = (Group.objects.get(name=name) for name in ("Crew", "Legal"))
        self.people = (self.ann, self.bob, self.eve)
        for person in self.people:
            for days in (5, 50, 500):
                self.make(person, days)

    def make(self, person, days):
        """Create a conversation with feedback, a private document and a shared one, so many days old."""
        then = timezone.now() - timedelta(days=days)
        document = make_document(f"{person}-{days}.md", owner=person)
        shared = make_document(
            f"shared-{person}-{days}.md", owner=person, users=[self.ann, self.bob, self.eve]
        )
        Document.objects.filter(pk__in=[document.pk, shared.pk]).update(changed_at=then)
        conversation, answer = answered(person, document)
        feedback = Feedback.objects.create(message=answer, rating="bad", comment=f"{days}")
        Feedback.objects.filter(pk=feedback.pk).update(updated_at=then)
        Conversation.objects.filter(pk=conversation.pk).update(updated_at=then)

    def left(self):
        """How many conversations, feedbacks and documents each person has."""
        return [
            (
                Conversation.objects.filter(owner=person, deleted_at=None).count(),
                Feedback.objects.filter(message__conversation__owner=person).count(),
                Document.objects.filter(owner=person).count(),
            )
            for person in self.people
        ]

    def test_without_rules_everything_stays(self):
        self.assertEqual(str(apply()), "0 conversations, 0 feedback, 0 files")
        self.assertEqual(self.left(), [(3, 3, 6)] * 3)
        self.assertFalse(AuditEntry.objects.exists())

    def test_each_kind_has_its_own_period_and_shared_documents_stay(self):
        Retention.objects.create(conversations=100, feedback=10, files=100)
        self.assertEqual(str(apply(dry_run=True)), "3 conversations, 6 feedback, 3 files")
        self.assertEqual(self.left(), [(3, 3, 6)] * 3)
        apply()
        self.assertEqual(self.left(), [(2, 1, 5)] * 3)
        entry = AuditEntry.objects.get(action="conversation_deleted")
        self.assertEqual(entry.subject, "By the retention rules: 3 conversations, 6 feedback, 3 files")
        Conversation.objects.exclude(deleted_at=None).update(deleted_at=timezone.now() - timedelta(hours=2))
        recording.purge()
        self.assertEqual(Conversation.objects.count(), 6)

    def test_the_group_with_the_longest_period_decides(self):
        Retention.objects.create(conversations=10)
        Retention.objects.create(group=self.crew, conversations=100)
        apply()
        self.assertEqual([each[0] for each in self.left()], [2, 2, 1])
        Conversation.objects.update(deleted_at=None)
        Retention.objects.create(group=self.legal)  # keeps everything for ever
        apply()
        self.assertEqual([each[0] for each in self.left()], [2, 3, 1])
        Conversation.objects.update(deleted_at=None)
        Retention.objects.filter(group=self.legal).update(conversations=20)
        apply()
        self.assertEqual([each[0] for each in self.left()], [2, 2, 1])

    def test_nothing_of_a_person_under_a_legal_hold_is_deleted(self):
        User.objects.filter(pk=self.ann.pk).update(legal_hold="case 17")
        Retention.objects.create(conversations=1, feedback=1, files=1)
        apply()
        self.assertEqual(self.left(), [(3, 3, 6), (0, 0, 3), (0, 0, 3)])

    def test_deletions_by_a_person_under_a_legal_hold_only_hide(self):
        User.objects.filter(pk=self.ann.pk).update(legal_hold="Case 7")
        long_ago = timezone.now() - timedelta(days=900)
        Conversation.objects.filter(owner__in=[self.ann, self.eve]).update(deleted_at=long_ago)
        recording.purge()
        self.assertEqual(Conversation.objects.filter(owner=self.ann).count(), 3)
        self.assertEqual(Conversation.objects.filter(owner=self.eve).count(), 0)
        self.assertEqual(self.left()[0][0], 0)

    def test_files_uploaded_by_programs_stay(self):
        Retention.objects.create(group=None, files=10)
        for document in Document.objects.filter(owner=self.eve):
            ExternalId.objects.create(owner=self.eve, external_id=document.name, document=document)
        apply()
        self.assertEqual(Document.objects.filter(owner=self.eve).count(), 6)

    def test_parts_of_an_archive_stay_or_go_with_it(self):
        Retention.objects.create(files=30)
        names = ("mirrored.zip", "by-program.zip", "changed-yesterday.zip", "old.zip")
        mirrored, by_program, changed, old = (make_document(name, owner=self.eve) for name in names)
        SourceFile.objects.create(
            document=mirrored, source="S", path="m.zip", size=1, modified_ns=1, sha256="0" * 64
        )
        ExternalId.objects.create(owner=self.eve, external_id="x", document=by_program)
        parts = [
            make_document("part.md", owner=self.eve, part_of=whole, part_path="part.md")
            for whole in (mirrored, by_program, changed, old)
        ]
        aged = Document.objects.filter(pk__in=[mirrored.pk, by_program.pk, old.pk, *(p.pk for p in parts)])
        aged.update(changed_at=timezone.now() - timedelta(days=100))
        apply()
        left = Document.objects.filter(pk__in=[part.pk for part in parts])
        self.assertEqual({part.part_of_id for part in left}, {mirrored.pk, by_program.pk, changed.pk})
        self.assertFalse(Document.objects.filter(pk=old.pk).exists())

    def test_a_group_with_a_rule_is_not_deleted(self):
        Retention.objects.create(group=self.legal, conversations=None)
        with self.assertRaises(ProtectedError):
            self.legal.delete()

    def test_an_answer_that_is_being_written_keeps_its_conversation(self):
        old = Conversation.objects.filter(owner=self.ann).earliest("updated_at")
        old.messages.filter(role="assistant").update(state="streaming")
        Retention.objects.create(conversations=100)
        apply()
        self.assertEqual([each[0] for each in self.left()], [3, 2, 2])

    def test_the_command_says_what_it_would_delete_and_deletes_it(self):
        Retention.objects.create(group=self.crew, conversations=10)
        said = io.StringIO()
        call_command("retention", "--dry-run", stdout=said)
        call_command("retention", stdout=said)
        words = "4 conversations, 0 feedback, 0 files."
        self.assertEqual(said.getvalue(), f"Would delete: {words}\nDeleted: {words}\n")

    def test_rules_are_made_in_the_admin_and_each_change_is_in_the_audit_log(self):
        self.client.force_login(User.objects.create_superuser("root"))
        for wrong in ("0", "-1", "36501", "abc"):
            self.assertEqual(self.client.post(f"{PAGE}add/", {"conversations": wrong}).status_code, 200)
        self.assertRedirects(self.client.post(f"{PAGE}add/", {"conversations": "365"}), PAGE)
        self.assertContains(
            self.client.post(f"{PAGE}add/", {}),
            "There is already a rule for this group or for everyone else.",
        )
        self.client.post(f"{PAGE}add/", {"group": self.crew.pk, "files": "90"})
        entries = AuditEntry.objects.filter(action="retention_changed").order_by("pk")
        self.assertEqual(
            [entry.subject.partition(": ")[2] for entry in entries],
            [
                "conversations 365, feedback no limit, files no limit",
                "conversations no limit, feedback no limit, files 90",
            ],
        )
        self.assertContains(self.client.get(PAGE), "all others")
