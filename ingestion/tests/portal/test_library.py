"""The list of documents: folders, categories, owners, sorting, and actions on several documents."""

import re
from html import unescape
from unittest import mock

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import TestCase

from chatsite.accounts.models import AuditEntry, User
from ingestion import sender_check
from ingestion.access.lists import Audience, audience_of, change_rights
from ingestion.indexing.reading import read
from ingestion.models import Document
from ingestion.parsing.sections import Unreadable
from ingestion.portal import library, several
from ingestion.tests.factories import make_document, make_user
from ingestion.tests.media import MediaMixin

SEVERAL = "/documents/several/"


class LibraryCase(MediaMixin, TestCase):
    def setUp(self):
        super().setUp()
        self.user, self.other = make_user("ada"), make_user("ben")
        self.client.force_login(self.user)

    def names(self, query=""):
        return [row.document.name for row in self.client.get(f"/documents/{query}").context["rows"]]


class FormatNameTests(LibraryCase):
    def test_the_form_and_the_refusal_of_a_file_list_the_formats_in_the_same_order(self):
        names = self.client.get("/documents/add/").context["kinds"]
        refused = make_document("a.exe", owner=self.user)
        refused.media_type = "application/octet-stream"
        with self.assertRaises(Unreadable) as caught:
            read(refused, None)
        self.assertIn(f"Readable formats: {', '.join(names)}.", str(caught.exception))


@pytest.mark.slow
class NarrowingTests(LibraryCase):
    def setUp(self):
        super().setUp()
        for name, folder, category, owner, title in (
            ("leave.md", "HR/Leave", "Rules", self.user, "Annual leave"),
            ("pay.md", "HR", "Rules", self.other, ""),
            ("crane.md", "Deck", "Manuals", self.other, "Zebra crane"),
        ):
            make_document(name, folder=folder, category=category, owner=owner, title=title, everyone=True)
        self.closed = make_document("board.md", folder="Board", category="Secret", owner=make_user("chair"))

    def test_the_count_of_a_folder_includes_its_subfolders(self):
        page = self.client.get("/documents/")
        folders = [(name, number) for _, name, number in page.context["folders"]]
        self.assertEqual(folders, [("Deck", 1), ("HR", 2)])
        self.assertCountEqual(self.names("?folder=HR"), ["leave.md", "pay.md"])
        inner = self.client.get("/documents/?folder=HR")
        self.assertEqual([name for _, name, _ in inner.context["folders"]], ["Leave"])
        self.assertEqual(self.names("?folder=HR/Leave"), ["leave.md"])
        self.assertEqual(self.names("?folder=H"), [])

    def test_a_folder_of_thousands_of_steps_makes_no_larger_page_than_an_empty_list(self):
        answer = self.client.get(f"/documents/?folder={'a/' * 10_000}")
        self.assertEqual(answer.status_code, 200)
        self.assertLess(len(answer.content), 1_000_000)

    def test_categories_and_owners_filter_the_list_and_every_link_keeps_them(self):
        self.assertEqual(self.names("?category=Manuals"), ["crane.md"])
        self.assertEqual(self.names("?category=Rules&owner=ada"), ["leave.md"])
        page = self.client.get("/documents/?category=Rules&sort=name").content.decode()
        links = [unescape(link) for link in re.findall(r'class="chip" href="([^"]+)"', page)]
        self.assertEqual(links, ["?folder=HR&category=Rules&sort=name"])

    def test_unreadable_documents_add_no_folder_category_or_owner(self):
        page = self.client.get("/documents/").content.decode()
        for word in ("Board", "Secret", "chair"):
            self.assertNotIn(word, page)
        for query in ("?folder=Board", "?category=Secret", "?owner=chair"):
            self.assertEqual(self.names(query), [], query)

    def test_the_list_is_sorted_in_each_order(self):
        Document.objects.filter(name="pay.md").update(size=900)
        # By the displayed title.
        self.assertEqual(self.names("?sort=name"), ["leave.md", "pay.md", "crane.md"])
        self.assertEqual(self.names("?sort=size")[0], "pay.md")
        self.assertEqual(self.names("?sort=nonsense"), self.names())

    def test_each_order_is_paginated_without_gaps_or_repetitions(self):
        for number in range(9):
            make_document(f"same{number}.md", title="Same", everyone=True)
        with self.settings():
            listing_size, library.PAGE_SIZE = library.PAGE_SIZE, 4
            self.addCleanup(setattr, library, "PAGE_SIZE", listing_size)
            for sort in library.SORTS:
                seen, query = [], f"?sort={sort}"
                while query:
                    page = self.client.get(f"/documents/{query}")
                    seen += [row.document.name for row in page.context["rows"]]
                    query = page.context["next"]
                self.assertEqual((len(seen), len(set(seen))), (12, 12), sort)

    def test_an_invalid_position_shows_the_first_page(self):
        first = self.names("?sort=name")
        for after in ("x", "1-" + "0" * 32, '["name","a","b"]:1:2'):
            self.assertEqual(self.names(f"?sort=name&after={after}"), first, after)


@pytest.mark.slow
class SeveralTests(LibraryCase):
    def setUp(self):
        super().setUp()
        self.mine = [make_document(f"{letter}.md", owner=self.user) for letter in "ab"]
        self.theirs = make_document("theirs.md", owner=self.other, everyone=True)
        self.closed = make_document("closed.md", owner=self.other)
        self.ticked = [str(each.public_id) for each in (*self.mine, self.theirs, self.closed)]

    def send(self, act, **posted):
        return self.client.post(SEVERAL, {"act": act, "document": self.ticked, **posted})

    def test_only_own_documents_have_a_checkbox_and_can_be_changed(self):
        self.assertEqual(
            self.client.get("/documents/").context["changeable"], {each.pk for each in self.mine}
        )
        asked = self.send("delete")
        self.assertEqual(list(asked.context["documents"]), self.mine)
        self.assertNotContains(asked, "closed.md")
        self.assertEqual(Document.objects.count(), 4)
        self.assertRedirects(self.send("delete", confirmed="yes"), "/documents/")
        self.assertEqual(set(Document.objects.values_list("name", flat=True)), {"theirs.md", "closed.md"})

    def test_adding_readers_asks_once_with_their_number(self):
        self.assertContains(self.send("rights"), "Who can read 2 documents")
        asked = self.send("rights", who="everyone")
        self.assertContains(asked, "More people than now")
        self.assertEqual(audience_of(self.mine[0]), Audience())
        self.send("rights", who="everyone", confirmed="yes")
        for each in self.mine:
            each.refresh_from_db()
            self.assertEqual(audience_of(each), Audience(everyone=True))
        self.closed.refresh_from_db()
        self.assertEqual(audience_of(self.closed), Audience())
        self.send("rights", who="me")  # removing readers needs no confirmation
        self.mine[0].refresh_from_db()
        self.assertEqual(audience_of(self.mine[0]), Audience())

    def test_a_right_that_is_withdrawn_meanwhile_ends_the_action(self):
        permissions = Permission.objects.filter(codename__in=["change_document", "delete_document"])
        accounts = User.objects.filter(pk=self.user.pk)
        for act, step, posted in (
            ("rights", "change_rights", {"who": "me"}),
            ("place", "record_as_staff", {"folder": "Attic", "category": ""}),
            ("delete", "record_as_staff", {"confirmed": "yes"}),
        ):
            for withdraw in (
                self.user.user_permissions.clear,
                lambda: accounts.update(is_staff=False),
                lambda: accounts.update(is_active=False),
            ):
                added = [make_document(name, owner=self.other, everyone=True) for name in ("1.md", "2.md")]
                self.ticked = [str(each.public_id) for each in added]
                accounts.update(is_staff=True, is_active=True)
                self.user.user_permissions.set(permissions)
                done = getattr(several, step)

                def then_withdrawn(*arguments, done=done, withdraw=withdraw):
                    done(*arguments)
                    withdraw()

                with (
                    self.subTest(act),
                    mock.patch.object(several, step, then_withdrawn),
                    mock.patch.object(sender_check, "CHECK_SECONDS", -1),
                ):
                    self.send(act, **posted)
                    found = Document.objects.filter(pk__in=[each.pk for each in added])
                    self.assertIn(
                        "2.md",
                        [each.name for each in found if audience_of(each).everyone and not each.folder],
                    )
                found.delete()

    def test_no_default_removes_readers(self):
        # The current readers of both.
        self.assertEqual(self.send("rights").context["form"]["who"].value(), "me")
        change_rights(self.user, self.mine[0], Audience(everyone=True))
        page = self.send("rights")
        self.assertIsNone(page.context["form"]["who"].value())
        self.assertEqual([row.readers.words for row in page.context["rows"]], ["Everyone", "Only you"])
        self.assertContains(page, "<bdi>Everyone</bdi>")
        change_rights(self.user, self.mine[1], Audience(everyone=True))
        self.assertEqual(self.send("rights").context["form"]["who"].value(), "everyone")

    def test_a_group_of_others_is_refused(self):
        board = Group.objects.create(name="Board")
        answer = self.send("rights", who="some", groups=[board.pk], confirmed="yes")
        self.assertContains(answer, "only groups you belong to", status_code=422)
        self.assertEqual(audience_of(self.mine[0]), Audience())

    def test_folder_and_category_are_changed_and_empty_fields_keep_their_values(self):
        Document.objects.filter(pk=self.mine[0].pk).update(category="Old")
        self.assertContains(self.send("place", folder="", category=""), "Name a folder", status_code=422)
        self.send("place", folder=" HR / Leave ", category="")
        self.assertEqual(
            list(Document.objects.filter(owner=self.user).order_by("name").values_list("folder", "category")),
            [("HR/Leave", "Old"), ("HR/Leave", "")],
        )

    def test_a_document_whose_name_is_taken_in_the_folder_is_not_moved_and_is_named(self):
        Document.objects.filter(owner=self.user).update(origin=f"user:{self.user.pk}")
        taken = make_document("a.md", owner=self.user, folder="HR")
        Document.objects.filter(pk=taken.pk).update(origin=f"user:{self.user.pk}")
        page = self.send("place", folder="HR", category="")
        self.assertContains(page, "These stay as they were", status_code=409)
        self.assertEqual(list(page.context["documents"]), [self.mine[0]])
        self.assertEqual(Document.objects.get(name="b.md").folder, "HR")
        self.assertEqual(Document.objects.get(pk=self.mine[0].pk).folder, "")

    def test_failed_documents_are_removed_at_once_and_searchable_versions_stay(self):
        Document.objects.filter(pk=self.mine[0].pk).update(status="failed", version=0)
        # An earlier version is still used.
        Document.objects.filter(pk=self.mine[1].pk).update(status="failed")
        self.assertContains(
            self.client.get("/documents/?show=failed"), "Remove all files that were never read"
        )
        asked = self.client.post(SEVERAL, {"act": "delete", "failed": ""})
        self.assertEqual(list(asked.context["documents"]), [self.mine[0]])
        self.client.post(SEVERAL, {"act": "delete", "failed": "", "confirmed": "yes"})
        self.assertEqual(Document.objects.filter(owner=self.user).get(), self.mine[1])

    def test_staff_with_the_permission_change_what_they_may_read_with_an_audit_entry(self):
        manager = make_user("ines", is_staff=True)
        manager.user_permissions.add(Permission.objects.get(codename="change_document"))
        self.client.force_login(manager)
        self.send("rights", who="me", confirmed="yes")
        entry = AuditEntry.objects.get(action="rights_changed")
        self.assertIn("theirs.md", entry.subject)
        self.theirs.refresh_from_db()
        self.assertEqual(audience_of(self.theirs), Audience())
        self.assertRedirects(self.send("delete", confirmed="yes"), "/documents/")
        self.assertEqual(Document.objects.count(), 4, "deleting is another right")

    def test_an_empty_selection_and_invalid_input_change_nothing(self):
        for posted in ({}, {"act": "delete"}, {"act": "burn", "document": self.ticked}):
            self.assertRedirects(self.client.post(SEVERAL, posted), "/documents/")
        self.client.post(SEVERAL, {"act": "delete", "document": ["x", "1"], "confirmed": "yes"})
        self.assertEqual(Document.objects.count(), 4)
        self.assertEqual(self.client.get(SEVERAL).status_code, 405)
        self.client.logout()
        self.assertEqual(self.send("delete", confirmed="yes").status_code, 302)
        self.assertEqual(Document.objects.count(), 4)
