"""The page of the admin that adds several files at once."""

import io
import re
import zipfile
from unittest import mock

import pytest
from django.contrib.auth.models import Group, Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, TestCase, override_settings

from chatsite.accounts.models import AuditEntry, User
from ingestion import documents, sender_check
from ingestion.access.lists import Audience, audience_of
from ingestion.models import Document
from ingestion.tests.media import MediaMixin

LIST = "/admin/ingestion/document/"
PAGE = f"{LIST}add-several/"


def archive(**files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as written:
        for name, text in files.items():
            written.writestr(f"{name}.md", text)
    return content.getvalue()


class AddSeveralTests(MediaMixin, TestCase):
    def setUp(self):
        super().setUp()
        self.manager = User.objects.create(username="manager", is_staff=True)
        self.allow("add_document", "view_document")
        self.ann = User.objects.create(username="ann")
        self.group = Group.objects.create(name="HR")
        self.client.force_login(self.manager)

    def allow(self, *codenames):
        self.manager.user_permissions.set(Permission.objects.filter(codename__in=codenames))

    def send(self, *files, **fields):
        sent = [SimpleUploadedFile(name, data) for name, data in files]
        return self.client.post(PAGE, {"file": sent, "who": "me"} | fields)

    def outcomes(self, response):
        return {document.name: outcome for outcome, document in response.context["added"]}

    def subjects(self):
        entries = AuditEntry.objects.filter(actor="manager", action="document_changed")
        return [entry.subject.partition(" (")[0] for entry in entries.order_by("pk")]

    def test_files_and_an_archive_get_one_audience_folder_and_category(self):
        response = self.send(
            ("a.md", b"Text."),
            ("b.txt", b"Words."),
            ("all.zip", archive(one="First.", two="Second.")),
            who="some",
            groups=[self.group.pk],
            people=[self.ann.pk],
            folder="/x//y/",
            category="rules",
        )
        self.assertEqual(response.status_code, 200)
        self.assertEqual(self.outcomes(response), dict.fromkeys(("a.md", "b.txt", "all.zip"), "Added"))
        self.assertContains(response, "New files are still to be read.")
        readers = Audience(False, frozenset({self.ann.pk}), frozenset({self.group.pk}))
        for document in Document.objects.all():
            self.assertEqual((document.folder, document.category), ("x/y", "rules"))
            self.assertEqual((document.owner, document.status), (self.manager, "waiting"))
            self.assertEqual(audience_of(document), readers)
        self.assertEqual(Document.objects.count(), 3)

    @override_settings(DOCUMENT_MAX_BYTES=1_000)
    def test_a_refused_file_does_not_stop_the_others(self):
        response = self.send(("large.md", b"x" * 1_001), ("a.md", b"Text."), ("...", b"Text."))
        self.assertEqual(response.status_code, 200)
        self.assertEqual(self.outcomes(response), {"a.md": "Added"})
        self.assertContains(response, "Refused: The file is larger than 0.001 MB")
        self.assertContains(response, "Refused: The file has no name.")
        self.assertContains(response, "2 files refused")
        self.assertEqual(Document.objects.get().name, "a.md")

    @override_settings(DOCUMENT_MAX_BYTES=10)
    def test_if_every_file_is_refused_the_response_is_an_error(self):
        response = self.send(("large.md", b"x" * 11))
        self.assertContains(response, "1 file refused", status_code=422)
        self.assertFalse(Document.objects.exists())
        self.assertEqual(self.subjects(), [])

    def test_unchanged_files_are_skipped_and_a_changed_one_is_replaced(self):
        self.send(("a.md", b"Text."), ("b.md", b"Text too."))
        Document.objects.update(status="ready", version=1)
        response = self.send(("a.md", b"Text."), ("b.md", b"Other."))
        self.assertEqual(self.outcomes(response), {"a.md": "Unchanged", "b.md": "Replaced"})
        self.assertContains(response, "<td>Unchanged</td>", html=True)
        self.assertEqual(Document.objects.count(), 2)

    def test_each_addition_and_replacement_is_in_the_audit_log(self):
        self.send(("a.md", b"Text."), ("b.md", b"Text too."), who="everyone")
        self.send(("a.md", b"Text."), ("b.md", b"Other."), who="everyone")
        self.assertEqual(self.subjects(), ["Added a.md", "Added b.md", "Replaced b.md"])

    def test_a_file_added_with_the_ordinary_form_is_in_the_audit_log_too(self):
        upload = {"upload": SimpleUploadedFile("a.md", b"Text."), "everyone": "on"}
        self.client.post(f"{LIST}add/", upload)
        self.assertEqual(self.subjects(), ["Added a.md"])

    def test_missing_input_is_reported_and_nothing_is_added(self):
        self.assertContains(
            self.client.post(PAGE, {"who": "me"}), "Choose at least one file", status_code=422
        )
        file = ("a.md", b"Text.")
        self.assertContains(self.send(file, who="some"), "Choose a group", status_code=422)
        gone = User.objects.create(username="gone", is_active=False)
        for people in ("x", "99999", gone.pk):
            page = self.send(file, who="some", people=[people])
            self.assertContains(page, "id_people_error", status_code=422)
            self.assertTrue(page.context["form"].errors["people"], people)
        self.assertFalse(Document.objects.exists())

    def test_the_page_needs_the_permission_to_add(self):
        for codenames in ((), ("view_document",), ("view_document", "change_document")):
            self.allow(*codenames)
            self.assertEqual(self.client.get(PAGE).status_code, 403, codenames)
            self.assertEqual(self.send(("a.md", b"Text.")).status_code, 403, codenames)
        self.client.force_login(self.ann)
        self.assertEqual(self.send(("a.md", b"Text.")).status_code, 302)
        self.client.logout()
        self.assertEqual(self.send(("a.md", b"Text.")).status_code, 302)
        self.assertFalse(Document.objects.exists())

    def test_nothing_is_added_after_the_permission_is_withdrawn_while_files_are_stored(self):
        store = documents._store

        def stored_slowly(withdraw):
            def stored(upload):
                result = store(upload)
                withdraw()
                return result

            return mock.patch.object(documents, "_store", stored)

        demote = User.objects.filter(pk=self.manager.pk).update
        with mock.patch.object(sender_check, "CHECK_SECONDS", -1):
            for withdraw in (self.allow, lambda: demote(is_staff=False)):
                with stored_slowly(withdraw):
                    page = self.send(("a.md", b"Text."), ("b.md", b"Text too."), who="everyone")
                self.assertContains(page, "You may no longer add documents here", 2, status_code=422)
                self.allow("add_document")
            demote(is_staff=True)
            with stored_slowly(self.allow):
                upload = {"upload": SimpleUploadedFile("a.md", b"Text."), "everyone": "on"}
                page = self.client.post(f"{LIST}add/", upload)
                self.assertContains(page, "You may no longer add documents here")
        self.assertFalse(Document.objects.exists())
        self.assertEqual(self.subjects(), [])

    def test_the_list_links_to_the_page_for_users_who_may_add(self):
        self.assertContains(self.client.get(LIST), PAGE)
        self.allow("view_document")
        self.assertNotContains(self.client.get(LIST), PAGE)

    def test_users_who_may_add_but_not_view_get_no_links_to_documents(self):
        self.allow("add_document")
        self.assertEqual(self.client.get(PAGE).status_code, 200)
        page = self.send(("a.md", b"Text."))
        self.assertContains(page, "a.md")
        self.assertNotContains(page, f"{LIST}{Document.objects.get().pk}/change/")

    def test_the_page_has_a_button_for_each_choice_of_readers(self):
        page = self.client.get(PAGE)
        buttons = re.findall(r'<input type="radio" name="who" value="(\w+)"[^>]*?( checked)?>', page.text)
        self.assertEqual(buttons, [("me", " checked"), ("some", ""), ("everyone", "")])
        self.assertNotContains(page, 'value="guests"')
        self.assertContains(page, 'enctype="multipart/form-data"')
        self.assertContains(page, "The files in a ZIP archive become documents")
        kept = self.send(who="everyone", groups=[self.group.pk], folder="x")
        self.assertRegex(kept.text, r'value="everyone"[^>]* checked>')
        self.assertContains(kept, f'<option value="{self.group.pk}" selected>HR', status_code=422)

    @override_settings(LOGIN_REQUIRED=False)
    def test_guests_are_offered_as_readers_if_the_site_admits_them(self):
        self.assertContains(self.client.get(PAGE), 'value="guests"')
        self.send(("a.md", b"Text."), who="guests")
        self.assertTrue(audience_of(Document.objects.get()).guests)

    def test_users_who_may_add_find_readers_by_typing(self):
        self.allow("add_document")
        for field, found in (("user", "ann"), ("group", "HR")):
            query = f"app_label=ingestion&model_name=accessentry&field_name={field}&term={found}"
            self.assertContains(self.client.get(f"/admin/autocomplete/?{query}"), found)
        self.allow("view_document")
        self.assertEqual(self.client.get(f"/admin/autocomplete/?{query}").status_code, 403)

    @pytest.mark.slow
    def test_more_than_a_hundred_files_are_refused_with_a_message(self):
        files = [(f"{number}.md", b"Text.") for number in range(101)]
        with self.assertLogs("django", "WARNING"):
            page = self.send(*files)
        self.assertContains(page, "At most 100 files can be sent at once", status_code=400)
        self.assertFalse(Document.objects.exists())
        self.assertEqual(len(self.outcomes(self.send(*files[:100]))), 100)

    def test_a_post_from_another_site_is_refused(self):
        strict = Client(enforce_csrf_checks=True)
        strict.force_login(self.manager)
        sent = {"file": SimpleUploadedFile("a.md", b"Text."), "who": "me"}
        self.assertEqual(strict.post(PAGE, sent).status_code, 403)
        self.assertFalse(Document.objects.exists())

    def test_hostile_names_are_displayed_but_never_executed(self):
        page = self.send(("<script>alert(1)<.md", b"Text."), ("<script>alert(2)<.md", b""))
        self.assertNotContains(page, "<script>alert")
