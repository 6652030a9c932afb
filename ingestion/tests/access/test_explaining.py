"""Why somebody may or may not read a document: the sentences, and that they agree with the rights."""

import random
from datetime import timedelta
from io import StringIO
from itertools import product

import pytest
from django.contrib.auth.models import Group, Permission
from django.core.management import CommandError, call_command
from django.test import TestCase
from django.utils import timezone

from chatsite.accounts.models import AuditEntry, User
from ingestion.access.explain import (
    documents_named,
    explain,
    why_readable,
)
from ingestion.access.lists import (
    Audience,
    set_audience,
)
from ingestion.models import Document
from ingestion.search.retrieval import search
from ingestion.tests.factories import command_principal, make_document, make_user

EVERYONE = "Everyone who signs in may read it."


def audience(*people, groups=(), **values):
    return Audience(
        user_ids=frozenset(user.pk for user in people),
        group_ids=frozenset(group.pk for group in groups),
        **values,
    )


class WhyTests(TestCase):
    def setUp(self):
        self.owner, self.ann, self.bob = (make_user(name) for name in ("owner", "ann", "bob"))
        self.staff = Group.objects.create(name="Staff")
        self.bob.groups.add(self.staff)
        self.guest = make_user("guest-1", guest_until=timezone.now() + timedelta(hours=1))
        self.document = make_document(owner=self.owner)

    def allow(self, *people, **values):
        set_audience(self.document, audience(*people, **values))

    def test_a_reader_sees_every_reason(self):
        self.allow(self.ann, groups=[self.staff], everyone=True)
        for user, reason in (
            (self.owner, "You added it."),
            (self.ann, "It is shared with you."),
            (self.bob, "You are in Staff, and Staff may read it."),
        ):
            self.assertEqual(why_readable(command_principal(user), self.document), [reason, EVERYONE])

    def test_a_stranger_a_guest_and_a_disabled_account_get_no_reason(self):
        self.assertEqual(why_readable(command_principal(self.ann), self.document), [])
        self.allow(everyone=True)
        self.assertEqual(why_readable(command_principal(self.guest), self.document), [])
        User.objects.filter(pk=self.ann.pk).update(is_active=False)
        self.assertEqual(why_readable(command_principal(self.ann), self.document), [])

    def test_an_administrator_sees_the_same_reasons_for_another_person(self):
        self.allow(self.ann, groups=[self.staff])
        self.assertEqual(explain(self.owner, self.document).reasons, ("owner added it.",))
        self.assertEqual(explain(self.ann, self.document).reasons, ("It is shared with ann.",))
        told = explain(self.bob, self.document)
        self.assertEqual(told.reasons, ("bob is in Staff, and Staff may read it.",))
        self.assertEqual((told.readable, told.verdict), (True, "bob may read guide.md."))

    def test_a_refusal_says_who_may_read_and_why_this_person_may_not(self):
        self.allow(self.bob, groups=[self.staff])
        told = explain(self.ann, self.document)
        self.assertEqual((told.readable, told.verdict), (False, "ann may not read guide.md."))
        self.assertEqual(
            told.reasons,
            (
                "Members of Staff may read it, and ann is in none of these groups.",
                "It is shared with bob, owner, and not with ann. owner added it.",
            ),
        )

    def test_for_a_guest_the_explanation_says_what_guests_may_not_read(self):
        self.allow(everyone=True)
        told = explain(self.guest, self.document)
        self.assertFalse(told.readable)
        self.assertEqual(told.reasons[0], "Everyone who signs in may read it, and guest-1 is a guest.")
        self.allow(everyone=True, guests=True)
        told = explain(self.guest, self.document)
        self.assertEqual(told.reasons, ("Everyone may read it, even without signing in.",))
        self.assertIn("Guests are not admitted", told.notes[0])

    def test_a_disabled_account_is_explained_with_the_rights_that_it_would_have(self):
        self.ann.is_active = False
        self.ann.save()
        self.allow(self.ann)
        told = explain(self.ann, self.document)
        self.assertFalse(told.readable)
        self.assertEqual(
            told.reasons,
            (
                "The account ann is disabled, so it may not read anything.",
                "If the account were active: It is shared with ann.",
            ),
        )

    def test_a_list_without_entries_lets_nobody_read(self):
        self.document = make_document(name="orphan.md")
        self.assertEqual(
            explain(self.ann, self.document).reasons, ("Nobody may read it: its access list is empty.",)
        )

    def test_the_notes_say_whether_search_finds_the_document(self):
        self.assertEqual(explain(self.owner, self.document).notes, ())
        self.document.status, self.document.reason = Document.Status.FAILED, "The file is damaged."
        self.assertEqual(
            explain(self.owner, self.document).notes,
            ("Reading it failed: The file is damaged.", "The previous version remains in use."),
        )
        self.document.version, self.document.status = 0, Document.Status.WAITING
        self.assertEqual(
            explain(self.owner, self.document).notes,
            (
                "Its state is “Waiting”.",
                "It has no passages yet, so no search or answer finds anything in it.",
            ),
        )

    def test_the_notes_say_that_the_admin_ignores_access_lists(self):
        self.ann.is_staff = True
        self.ann.save()
        self.assertEqual(explain(self.ann, self.document).notes, ())
        self.ann.user_permissions.add(Permission.objects.get(codename="view_document"))
        ann = User.objects.get(pk=self.ann.pk)
        self.assertIn("can view it in the admin", explain(ann, self.document).notes[0])

    def test_a_long_list_of_names_is_cut(self):
        self.allow(*(make_user(f"p{number:02}") for number in range(14)))
        self.assertIn("p07, p08 and 5 more", explain(self.ann, self.document).reasons[0])


class AgreementTests(TestCase):
    @pytest.mark.slow
    def test_explanations_agree_with_what_is_readable_whatever_the_rights(self):
        """With random rights, the explanation, the reader's own reasons, the list and the search agree."""
        dice = random.Random(7)
        groups = [Group.objects.create(name=f"G{number}") for number in range(4)]
        hour = timezone.now() + timedelta(hours=1)
        people = [
            make_user(f"u{number}", is_active=dice.random() > 0.2, guest_until=hour if number > 6 else None)
            for number in range(9)
        ]
        for person in people:
            person.groups.set(dice.sample(groups, dice.randrange(3)))
        for number in range(25):
            owner = dice.choice([None, *people])
            document = make_document(f"d{number}.md", [f"Leave d{number}."], owner=owner)
            guests = dice.random() < 0.15
            readers = audience(
                *dice.sample(people, dice.randrange(3)),
                groups=dice.sample(groups, dice.randrange(3)),
                everyone=guests or dice.random() < 0.2,
                guests=guests,
            )
            set_audience(document, readers)
        documents = list(Document.objects.all())
        found = {}
        for person in people:
            passages = search(command_principal(person), "leave", top=50).passages
            found[person.pk] = {passage.document_id for passage in passages}
        answers = set()
        for person, document in product(people, documents):
            principal = command_principal(person)
            told = explain(person, document)
            visible = Document.objects.visible_to(principal).filter(pk=document.pk).exists()
            self.assertEqual(told.readable, visible, (person, document, told))
            self.assertEqual(bool(why_readable(principal, document)), visible)
            self.assertEqual(document.pk in found[person.pk], visible)
            self.assertTrue(told.reasons)
            answers.add((visible, person.is_active, person.is_guest))
        self.assertGreaterEqual(len(answers), 5)


class NamingTests(TestCase):
    def test_a_document_is_named_by_name_path_number_public_id_or_label(self):
        one = make_document("guide.md", folder="rules")
        two = make_document("guide.md")
        for text in ("rules/guide.md", str(one.pk), str(one.public_id), f"guide~{one.public_id.hex[:8]}.md"):
            self.assertEqual(documents_named(text), [one], text)
        self.assertEqual(set(documents_named(" guide.md ")), {one, two})
        for text in ("", "\0", "nothing.md", "9" * 30, "²"):
            self.assertEqual(documents_named(text), [], text)


class CommandTests(TestCase):
    def setUp(self):
        self.ann = make_user("ann")
        self.document = make_document(users=[self.ann])

    def run_command(self, *arguments):
        output = StringIO()
        call_command("explain_access", *arguments, stdout=output)
        return output.getvalue()

    def test_the_command_prints_the_reasons_and_is_logged(self):
        told = self.run_command("ann", "guide.md")
        self.assertIn("ann may read guide.md.", told)
        self.assertIn("- It is shared with ann.", told)
        entry = AuditEntry.objects.get()
        self.assertEqual((entry.action, entry.person, entry.actor_id), ("explain_access", "ann", None))
        self.assertTrue(entry.actor.startswith("command of "))
        self.assertIn(str(self.document.public_id), entry.subject)

    def test_an_unknown_person_or_document_is_reported(self):
        for user, document, words in (("bob", "guide.md", "named “bob”"), ("ann", "x", "document “x”")):
            with self.assertRaisesMessage(CommandError, words):
                self.run_command(user, document)
        self.assertFalse(AuditEntry.objects.exists())
