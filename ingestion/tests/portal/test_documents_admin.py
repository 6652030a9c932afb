"""Documents in the admin."""

import errno
import html
import re
from datetime import timedelta
from unittest.mock import patch

import pytest
from django.contrib.auth.models import Group, Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import TestCase, override_settings
from django.utils import timezone

from chatsite.accounts.models import AuditEntry, User
from ingestion.access.lists import (
    Audience,
    audience_of,
    change_rights,
    set_audience,
)
from ingestion.models import Document, Passage
from ingestion.tests.factories import make_document
from ingestion.tests.media import MediaMixin

LIST = "/admin/ingestion/document/"
HOSTILE = "<script>alert(1)</script>"


@pytest.mark.slow
class DocumentsAdminTests(MediaMixin, TestCase):
    def setUp(self):
        super().setUp()
        self.admin = User.objects.create_superuser("admin")
        self.ann = User.objects.create(username="ann")
        self.group = Group.objects.create(name="HR")
        self.client.force_login(self.admin)

    def upload(self, name="a.md", data=b"Text.", **fields):
        return self.client.post(f"{LIST}add/", {"upload": SimpleUploadedFile(name, data)} | fields)

    def test_a_file_is_added_with_its_rights(self):
        response = self.upload(users=[self.ann.pk], groups=[self.group.pk], folder="/x//y/", category="rules")
        self.assertRedirects(response, LIST)
        document = Document.objects.get()
        self.assertEqual((document.name, document.folder, document.category), ("a.md", "x/y", "rules"))
        self.assertEqual((document.owner, document.status), (self.admin, "waiting"))
        self.assertEqual(
            audience_of(document), Audience(False, frozenset({self.ann.pk}), frozenset({self.group.pk}))
        )

    def test_the_last_day_is_set_on_the_page_and_the_list_shows_when_it_has_passed(self):
        self.upload(folder="rules")
        Document.objects.update(status="ready", version=1)
        document = Document.objects.get()
        yesterday = timezone.localdate() - timedelta(days=1)
        page = f"{LIST}{document.pk}/change/"
        self.assertContains(self.client.get(LIST), "✓ Ready")
        self.client.post(page, {"folder": "rules", "valid_until": str(yesterday)})
        document.refresh_from_db()
        self.assertEqual((document.folder, document.valid_until), ("rules", yesterday))
        self.assertContains(self.client.get(LIST), "✗ Expired")
        entry = AuditEntry.objects.get(action="document_changed", subject__startswith="Changed (")
        self.assertEqual(
            entry.subject,
            f"Changed (last day: {yesterday}) Private document {document.pk} ({document.public_id})",
        )
        self.assertContains(self.client.get(page), f'value="{yesterday}"')

    def test_a_changed_folder_and_category_are_in_the_audit_log(self):
        document = make_document("a.md", owner=self.ann, groups=[self.group])
        page = f"{LIST}{document.pk}/change/"
        self.client.post(page, {"folder": "rules", "category": "leave", "groups": [self.group.pk]})
        self.client.post(page, {"folder": "", "category": "leave", "groups": [self.group.pk]})
        self.client.post(page, {"folder": "", "category": "leave", "groups": [self.group.pk]})
        entries = AuditEntry.objects.filter(action="document_changed").order_by("pk")
        named = f"a.md ({document.public_id})"
        self.assertEqual(
            [(entry.actor, entry.person, entry.subject) for entry in entries],
            [
                ("admin", "ann", f"Changed (category: leave; folder: rules) {named}"),
                ("admin", "ann", f"Changed (folder: removed) {named}"),
            ],
        )

    def test_a_changed_folder_changes_the_time_of_the_last_change_and_saving_alone_does_not(self):
        long_ago = timezone.now() - timedelta(days=100)
        document = make_document("a.md", owner=self.ann, everyone=True)
        Document.objects.filter(pk=document.pk).update(changed_at=long_ago)
        page = f"{LIST}{document.pk}/change/"
        for folder, is_changed in (("", False), ("rules", True)):
            self.client.post(page, {"everyone": "on", "folder": folder, "category": "", "valid_until": ""})
            document.refresh_from_db()
            self.assertEqual(document.changed_at != long_ago, is_changed)

    def test_documents_for_named_people_are_not_named_in_the_list(self):
        bob = User.objects.create(username="bob")
        private = make_document("divorce.md", owner=self.ann, folder="My papers")
        lent = make_document("lent.md", owner=self.ann, users=[bob])
        make_document("pay.md", owner=self.ann, groups=[self.group])
        make_document("for-me.md", owner=self.ann, users=[self.admin])
        make_document("mirrored.md", users=[bob])
        page = self.client.get(LIST)
        for hidden in ("ivorce", "My papers", "ent.md", "Lent"):
            self.assertNotContains(page, hidden)
        for shown in (f"Private document {private.pk}", f"Private document {lent.pk}"):
            self.assertContains(page, shown)
        for shown in ("pay.md", "for-me.md", "mirrored.md"):
            self.assertContains(page, shown)
        self.assertContains(self.client.get(LIST, {"q": "divorce"}), "0 documents")
        self.assertContains(self.client.get(LIST, {"q": "ann"}), f"Private document {private.pk}")
        self.assertEqual(self.client.get(LIST, {"o": "1.2"}).status_code, 200)
        chosen = {"action": "change_many", "_selected_action": [private.pk, lent.pk]}
        changing = self.client.post(LIST, chosen, follow=True)
        self.assertContains(changing, f"Private document {private.pk}")
        self.assertNotContains(changing, "Divorce")
        self.assertNotContains(self.client.get(f"{LIST}{private.pk}/delete/"), "Divorce")
        self.assertFalse(AuditEntry.objects.filter(action="document_read").exists())
        self.assertContains(self.client.get(f"{LIST}{private.pk}/change/"), "divorce.md")
        self.assertEqual(AuditEntry.objects.get(action="document_read").person, "ann")

    def test_documents_for_named_people_are_not_named_in_the_audit_log(self):
        private = make_document("divorce.md", owner=self.ann, folder="My papers")
        page = f"{LIST}{private.pk}/change/"
        self.client.get(page)
        self.client.post(page, {"folder": "Divorce", "category": "Lawyers"})
        change_rights(self.admin, private, Audience(user_ids=frozenset({self.admin.pk})))
        self.client.post(f"{LIST}{private.pk}/delete/", {"post": "yes"})
        self.assertFalse(Document.objects.exists())
        named = f"Private document {private.pk} ({private.public_id})"
        subjects = list(
            AuditEntry.objects.filter(person="ann").order_by("pk").values_list("subject", flat=True)
        )
        self.assertEqual(
            subjects,
            [
                named,
                named,
                f"Changed (category; folder) {named}",
                f"{named}: ann → admin, ann",
                f"Deleted {named}",
            ],
        )

    def test_a_category_used_only_for_named_people_is_neither_offered_nor_found(self):
        make_document("divorce.md", owner=self.ann, category="Lawyers")
        make_document("pay.md", owner=self.ann, groups=[self.group], category="Money")
        page = self.client.get(LIST)
        self.assertContains(page, "Money")
        self.assertNotContains(page, "Lawyers")
        for asked in ({"category": "Lawyers"}, {"category_named": "Lawy"}):
            self.assertContains(self.client.get(LIST, asked), "0 documents")
        for comparison in ("in", "exact", "gt", "lte"):
            asked = {f"category__{comparison}": "Lawyers"}
            self.assertEqual(self.client.get(LIST, asked).status_code, 400)
        self.assertContains(self.client.get(LIST, {"category": "Money"}), "pay.md")

    def page_of_many(self):
        """(document, its page, what its form sends unchanged): 400 groups and 150 people may read it."""
        groups = Group.objects.bulk_create(Group(name=f"Team {n:03} <&>") for n in range(400))
        people = User.objects.bulk_create(
            User(username=f"p{n:03}", first_name="Ada" if n % 2 else "", last_name="Bell") for n in range(150)
        )
        document = make_document("many.md", owner=self.ann)
        set_audience(
            document,
            Audience(False, frozenset(each.pk for each in people), frozenset(each.pk for each in groups)),
        )
        page = self.client.get(f"{LIST}{document.pk}/change/")
        self.assertContains(page, "<details><summary>1 in all</summary>")
        text = page.content.decode()
        areas = re.findall(r'<textarea name="([\w-]+)"[^>]*>(.*?)</textarea>', text, re.DOTALL)
        sent = {name: html.unescape(words).strip() for name, words in areas}
        return document, page, {"folder": document.folder, "category": "", **sent}

    def test_a_page_with_many_readers_is_bounded_and_saving_it_keeps_all_readers(self):
        document, page, sent = self.page_of_many()
        self.assertLess(page.content.decode().count("<option"), 300)
        self.assertIn("Ada Bell (p001)", sent["users-names"])
        before = audience_of(document)
        self.assertEqual((len(before.user_ids), len(before.group_ids)), (150, 400))
        sent = {name: words.replace("\n", "\r\n") for name, words in sent.items()}
        self.assertRedirects(self.client.post(f"{LIST}{document.pk}/change/", sent), LIST)
        self.assertEqual(audience_of(Document.objects.get(pk=document.pk)), before)
        self.assertFalse(AuditEntry.objects.filter(action="rights_changed").exists())

    def test_names_are_removed_from_and_added_to_many_and_an_invalid_one_changes_nothing(self):
        document, _, sent = self.page_of_many()
        address = f"{LIST}{document.pk}/change/"
        for wrong in ("Nobody knows it", str(self.group.pk), "\0"):
            names = f"{sent['groups-names']}\n{wrong}"
            page = self.client.post(address, {**sent, "groups-names": names})
            if wrong != "\0":  # an empty line
                self.assertContains(page, f"{wrong} ?” is not a valid value")
                self.assertContains(page, wrong)
            self.assertEqual(len(audience_of(document).group_ids), 400)
        names = sent["groups-names"].replace("Team 007 <&>\n", "") + "\n HR \n\n"
        people = sent["users-names"].replace("Ada Bell (p001)", "admin")
        self.client.post(address, {**sent, "groups-names": names, "users-names": people})
        readers = audience_of(Document.objects.get(pk=document.pk))
        self.assertEqual((len(readers.user_ids), len(readers.group_ids)), (150, 400))
        self.assertIn(self.group.pk, readers.group_ids)
        self.assertNotIn(Group.objects.get(name="Team 007 <&>").pk, readers.group_ids)
        self.assertNotIn(User.objects.get(username="p001").pk, readers.user_ids)

    def test_a_filter_with_many_choices_is_collapsed_until_one_is_selected(self):
        for number in range(50):
            make_document(f"{number}.md", category=f"category {number}")
        opened, closed = (rf'data-filter-title="category"\s*{state}>' for state in ("open", ""))
        page = self.client.get(LIST)
        self.assertRegex(page.text, closed)
        self.assertContains(page, 'href="#changelist-filter"')
        chosen = self.client.get(LIST, {"category": "category 7"})
        self.assertRegex(chosen.text, opened)

    def test_an_unchanged_file_is_skipped_and_a_changed_one_becomes_a_new_version(self):
        self.upload(groups=[self.group.pk])
        Document.objects.update(status="ready", version=1)
        response = self.client.post(
            f"{LIST}add/",
            {"upload": SimpleUploadedFile("a.md", b"Text."), "groups": [self.group.pk]},
            follow=True,
        )
        self.assertContains(response, "This file is already here")
        self.assertEqual(Document.objects.get().status, "ready")
        self.upload(data=b"Other.", groups=[self.group.pk])
        self.assertEqual((Document.objects.get().status, Document.objects.get().version), ("waiting", 1))

    def test_after_a_change_of_the_embedding_model_a_message_says_what_to_do(self):
        self.add()
        self.assertNotContains(self.client.get(LIST), "reembed")
        with override_settings(EMBEDDING_MODEL="other", EMBEDDING_DIMENSIONS=8):
            self.assertContains(
                self.client.get(LIST), "but the settings say other (8): run “manage.py reembed”"
            )

    @override_settings(DOCUMENT_MAX_BYTES=10)
    def test_a_file_that_is_too_large_is_a_form_error(self):
        self.assertContains(self.upload(data=b"x" * 11), "The file is larger than")
        self.assertEqual(Document.objects.count(), 0)

    def test_an_invalid_name_is_refused(self):
        self.upload(name="...")
        self.assertEqual(Document.objects.count(), 0)

    def test_a_file_that_cannot_be_stored_is_a_form_error_for_staff_who_may_only_add(self):
        self.ann.is_staff = True
        self.ann.save()
        self.ann.user_permissions.set(Permission.objects.filter(codename="add_document"))
        self.client.force_login(self.ann)
        with patch("ingestion.documents.files.store", side_effect=OSError(errno.ENOSPC, "full")):
            response = self.upload(folder="rules", everyone="on")
        self.assertContains(response, "The server&#x27;s disk is full")
        self.assertContains(response, 'value="rules"')
        self.assertFalse(Document.objects.exists())

    def test_changing_rights_keeps_the_passages(self):
        document = self.add(owner=self.ann)
        page = self.client.get(f"{LIST}{document.pk}/change/")
        self.assertContains(page, "Five days.")
        for form in ("change", "delete"):
            self.assertContains(
                self.client.get(f"{LIST}{document.pk}/{form}/"), "Earlier answers keep their text"
            )
        self.assertNotContains(self.client.get(f"{LIST}add/"), "Earlier answers keep")
        response = self.client.post(
            f"{LIST}{document.pk}/change/", {"groups": [self.group.pk], "folder": "b"}
        )
        self.assertRedirects(response, LIST)
        document.refresh_from_db()
        self.assertEqual(audience_of(document), Audience(group_ids=frozenset({self.group.pk})))
        self.assertTrue(document.access_list.entries.filter(user=self.ann).exists())
        self.assertEqual((document.folder, document.version, Passage.objects.count()), ("b", 1, 1))

    def test_removing_the_last_reader_shows_a_message(self):
        document, mirrored = make_document("a.md", owner=self.ann, everyone=True), make_document("b.md")
        page, of_mirrored = (f"{LIST}{each.pk}/change/" for each in (document, mirrored))
        alone = "Nobody but its owner, ann, can read this document now."
        self.assertContains(self.client.post(page, {}, follow=True), alone)
        self.assertNotContains(self.client.post(page, {"category": "leave"}, follow=True), alone)
        self.assertContains(self.client.post(page, {"groups": [self.group.pk]}, follow=True), alone)
        self.assertNotContains(self.client.post(page, {"users": [self.admin.pk]}, follow=True), alone)
        self.assertNotContains(self.client.post(of_mirrored, {"everyone": "on"}, follow=True), "Nobody")
        page = self.client.post(of_mirrored, {}, follow=True)
        self.assertContains(page, "Nobody can read this document now: it has no owner.")
        self.upload("c.md")
        self.assertContains(self.client.get(LIST), "Nobody but its owner, admin, can read this document now.")

    def test_a_document_is_deleted_with_its_passages(self):
        document = self.add()
        self.client.post(f"{LIST}{document.pk}/delete/", {"post": "yes"})
        self.assertEqual((Document.objects.count(), Passage.objects.count()), (0, 0))

    def test_hostile_titles_names_and_passages_are_displayed_but_never_executed(self):
        User.objects.filter(pk=self.ann.pk).update(username=HOSTILE)
        document = self.add(f"{HOSTILE}.md".replace("/", ""), f"# {HOSTILE}\n\n`{HOSTILE}`", owner=self.ann)
        Document.objects.update(title=HOSTILE, folder=HOSTILE, category=HOSTILE, reason=HOSTILE)
        for path in (
            LIST,
            f"{LIST}?q=script",
            f"{LIST}{document.pk}/change/",
            f"{LIST}{document.pk}/delete/",
        ):
            page = self.client.get(path)
            self.assertEqual(page.status_code, 200, path)
            self.assertNotContains(page, HOSTILE)
            self.assertNotContains(page, "<script>alert")

    def test_filters_and_search_work(self):
        self.add(owner=self.ann, audience=Audience(group_ids=frozenset({self.group.pk})))
        for query in (
            "status__exact=ready",
            f"access_list__entries__group__id__exact={self.group.pk}",
            "q=guide",
        ):
            self.assertContains(self.client.get(f"{LIST}?{query}"), "1 document")
        self.assertContains(self.client.get(f"{LIST}?status__exact=failed"), "0 documents")

    def test_readers_get_links_to_the_page_the_file_and_the_image(self):
        document = self.add(owner=self.ann, audience=Audience(everyone=False))
        page = f"{LIST}{document.pk}/change/"
        links = [f'href="/documents/{document.public_id}/"', f'href="/content/{document.public_id}/']
        self.assertNotContains(self.client.get(page), links[0])
        Document.objects.update(media_type="application/pdf")
        set_audience(document, Audience(everyone=True))
        self.assertNotContains(self.client.get(page), "Image of page 1")  # it has not been read as a PDF
        Document.objects.update(page_count=1)
        shown = self.client.get(page)
        for link in (*links, f'href="/content/{document.public_id}/pages/1.png"'):
            self.assertContains(shown, link)

    def test_lists_and_vectors_cannot_be_edited(self):
        for model in ("accesslist", "accessentry", "passage", "vector", "embeddingspace"):
            self.assertEqual(self.client.get(f"/admin/ingestion/{model}/").status_code, 404, model)

    def test_staff_without_the_permission_and_other_people_see_nothing(self):
        document = self.add()
        staff = User.objects.create(username="staff", is_staff=True)
        for user in (staff, self.ann):
            self.client.force_login(user)
            for path in (LIST, f"{LIST}add/", f"{LIST}{document.pk}/change/", f"{LIST}{document.pk}/delete/"):
                self.assertIn(self.client.get(path).status_code, (302, 403), path)

    def test_users_who_may_only_view_change_nothing(self):
        document = self.add()
        staff = User.objects.create(username="staff", is_staff=True)
        staff.user_permissions.add(Permission.objects.get(codename="view_document"))
        self.client.force_login(staff)
        self.assertContains(self.client.get(f"{LIST}{document.pk}/change/"), "Five days.")
        for path in (f"{LIST}add/", f"{LIST}{document.pk}/change/", f"{LIST}{document.pk}/delete/"):
            self.assertEqual(self.client.post(path, {"post": "yes"}).status_code, 403, path)
