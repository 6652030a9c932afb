"""Adding documents in the portal, changing their rights, reading them again, deleting them."""

import shutil
import tempfile
from unittest import mock

from django.contrib.auth.models import Group
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import TestCase, override_settings

from chatsite.accounts.models import User
from chatsite.accounts.principal import Principal
from ingestion import documents, sender_check
from ingestion.access.lists import (
    Audience,
    audience_of,
    set_audience,
)
from ingestion.models import Document
from ingestion.tests.factories import make_user
from ingestion.tests.media import forget_jobs

FOLDER = tempfile.mkdtemp()


def tearDownModule():
    shutil.rmtree(FOLDER)


def text_file(name="leave.md", content=b"# Leave\n\nTwenty-five days a year."):
    return SimpleUploadedFile(name, content)


@override_settings(MEDIA_ROOT=FOLDER)
class UploadTests(TestCase):
    def setUp(self):
        forget_jobs()
        self.hr, self.board = Group.objects.create(name="HR"), Group.objects.create(name="Board")
        self.user, self.colleague, self.stranger = (
            make_user("ada", groups=["HR"]),
            make_user("bob"),
            make_user("eve"),
        )
        self.member = make_user("mia", groups=["HR"])
        self.client.force_login(self.user)

    def upload(self, *files, accept="text/html", **values):
        values = {"who": "me", "file": list(files) or [text_file()]} | values
        return self.client.post("/documents/add/", values, headers={"Accept": accept})

    def test_an_unchanged_file_is_skipped_and_a_changed_one_becomes_a_new_version(self):
        def outcome(text, **values):
            file = SimpleUploadedFile("plan.md", text)
            reply = self.upload(file, accept="application/json", **values).json()
            return reply["documents"][0]["outcome"]

        self.assertEqual(outcome(b"# Plan"), "added")
        Document.objects.update(status="ready", version=1)
        self.assertEqual(outcome(b"# Plan"), "unchanged")
        self.assertEqual(outcome(b"# Other plan"), "replaced")
        self.assertEqual(outcome(b"# Plan", folder="else"), "added")
        self.assertEqual(outcome(b"# Plan", who="everyone"), "replaced")
        self.client.force_login(self.colleague)
        self.assertEqual(outcome(b"# Plan"), "added")
        self.assertEqual(Document.objects.count(), 3)

    def test_a_group_that_is_left_while_files_are_stored_gets_none_of_them(self):
        store = documents._store

        def stored_slowly(upload):
            stored = store(upload)
            self.user.groups.clear()
            return stored

        with (
            mock.patch.object(sender_check, "CHECK_SECONDS", -1),
            mock.patch.object(documents, "_store", stored_slowly),
        ):
            files = text_file(), text_file("pay.md")
            answer = self.upload(*files, accept="application/json", who="some", groups=[self.hr.pk])
        self.assertEqual(answer.status_code, 422)
        refusals = [(refused["name"], refused["message"]) for refused in answer.json()["refused"]]
        words = "You can choose only groups you belong to."
        self.assertEqual(refusals, [("leave.md", words), ("pay.md", words)])
        self.assertFalse(Document.objects.exists())

    def test_staff_demoted_while_files_are_stored_share_none_with_groups_that_are_not_theirs(self):
        User.objects.filter(pk=self.user.pk).update(is_staff=True)
        store = documents._store

        def stored_slowly(upload):
            User.objects.filter(pk=self.user.pk).update(is_staff=False)
            return store(upload)

        with (
            mock.patch.object(sender_check, "CHECK_SECONDS", -1),
            mock.patch.object(documents, "_store", stored_slowly),
        ):
            answer = self.upload(accept="application/json", who="some", groups=[self.board.pk, self.hr.pk])
        self.assertEqual([each["code"] for each in answer.json()["refused"]], ["group_closed"])
        self.assertFalse(Document.objects.exists())

    def readers(self):
        everyone = [self.user, self.colleague, self.stranger, self.member]
        return [
            user.username
            for user in everyone
            if Document.objects.visible_to(Principal(user.pk, "command")).exists()
        ]

    def test_only_me_is_the_default(self):
        self.assertContains(self.client.get("/documents/add/"), 'name="who" value="me" required checked')

    def test_the_form_shows_the_limit_and_a_checkbox_for_each_own_group(self):
        page = self.client.get("/documents/add/")
        self.assertContains(page, "Up to 100 MB each.")
        self.assertContains(page, f'<input type="checkbox" name="groups" value="{self.hr.pk}"')

    def test_a_quotation_mark_in_a_name_is_kept_by_the_form(self):
        self.upload(SimpleUploadedFile("The %22plan%22.txt", b"Text."))
        self.assertEqual(Document.objects.get().name, 'The "plan".txt')

    def test_a_document_is_added_for_its_owner_only(self):
        self.assertRedirects(self.upload(), "/documents/add/")
        self.assertEqual(self.readers(), ["ada"])

    def test_a_file_with_the_same_name_reports_what_it_replaced(self):
        self.upload(folder="People", who="everyone")
        document = Document.objects.get()
        Document.objects.update(version=1, status=Document.Status.READY)
        page = self.client.get(f"/documents/{document.public_id}/")
        self.assertContains(page, "Replace with a new file")
        form = self.client.get(f"/documents/add/?replace={document.public_id}")
        self.assertContains(form, f"The file that you choose replaces <bdi>{document.name}</bdi>")
        self.assertContains(form, "Replace a document")
        self.assertNotContains(form, "Add documents")
        self.assertContains(form, 'value="People"')
        self.assertContains(form, 'value="everyone" checked')
        words = f"Replaced: version 2 of {document.name}"
        changed = SimpleUploadedFile(document.name, b"Other words.")
        values = {"who": "everyone", "folder": "People", "file": [changed]}
        self.assertContains(self.client.post("/documents/add/", values, follow=True), words)
        Document.objects.update(version=1)
        values["file"] = [SimpleUploadedFile(document.name, b"Third words.")]
        told = self.client.post("/documents/add/", values, headers={"Accept": "application/json"}).json()
        self.assertEqual(told["documents"][0]["outcome_words"], words)

    def test_a_file_of_another_name_replaces_the_document_that_was_chosen(self):
        self.upload(folder="People", who="everyone")
        document = Document.objects.get()
        Document.objects.update(version=1, status=Document.Status.READY)
        address = f"/documents/add/?replace={document.public_id}"

        def replace(*names):
            files = [SimpleUploadedFile(name, f"Words of {name}.".encode()) for name in names]
            values = {"who": "everyone", "folder": "People", "file": files}
            return self.client.post(address, values, headers={"Accept": "application/json"})

        reply = replace("leave-2027.md").json()["documents"][0]
        self.assertEqual((reply["id"], reply["name"]), (str(document.public_id), "leave-2027.md"))
        self.assertEqual(reply["outcome_words"], "Replaced: version 2 of leave-2027.md")
        self.assertEqual(Document.objects.get().name, "leave-2027.md")
        with self.subTest("only the first of several files replaces it"):
            outcomes = [each["outcome"] for each in replace("leave-2028.md", "other.md").json()["documents"]]
            self.assertEqual(outcomes, ["replaced", "added"])
        with self.subTest("the name of another document is refused"):
            refused = replace("other.md")
            self.assertContains(refused, "Another document of yours has this name", status_code=422)
            self.assertEqual(Document.objects.get(pk=document.pk).name, "leave-2028.md")
        with self.subTest("a colleague cannot replace it, and adds nothing"):
            self.client.force_login(self.colleague)
            self.assertEqual(replace("mine.md").status_code, 404)
        with self.subTest("a deleted document is not replaced, and nothing is added"):
            self.client.force_login(self.user)
            Document.objects.get(pk=document.pk).delete()
            self.assertEqual(replace("leave-2029.md").status_code, 404)
        self.assertEqual(Document.objects.values_list("name", flat=True).get(), "other.md")

    def test_a_second_copy_and_a_namesake_in_another_folder_are_pointed_out(self):
        def words(name, text, folder=""):
            file = SimpleUploadedFile(name, text)
            reply = self.upload(file, folder=folder, accept="application/json").json()
            return reply["documents"][0]["outcome_words"]

        self.assertEqual(words("plan.md", b"# Plan", "People"), "")
        self.assertEqual(words("copy.md", b"# Plan"), "You have this file already: People/plan.md")
        namesake = "You have another document of this name: People/plan.md"
        self.assertEqual(words("plan.md", b"# Plan of 2027"), namesake)
        page = self.upload(SimpleUploadedFile("third.md", b"# Plan"))
        self.assertContains(self.client.get(page.url), "1 file added. You have this file already: ")
        self.client.force_login(self.colleague)
        self.assertEqual(words("plan.md", b"# Plan"), "")

    def test_a_document_is_added_for_a_group(self):
        self.upload(who="some", groups=[self.hr.pk])
        self.assertEqual(self.readers(), ["ada", "mia"])

    def test_a_document_is_added_for_people_by_name(self):
        self.upload(who="some", people="bob, mia")
        self.assertEqual(self.readers(), ["ada", "bob", "mia"])

    def test_a_document_is_added_for_everyone(self):
        self.upload(who="everyone")
        self.assertEqual(self.readers(), ["ada", "bob", "eve", "mia"])

    def test_groups_and_names_apply_only_if_their_option_is_selected(self):
        self.upload(who="me", groups=[self.hr.pk], people="bob")
        self.assertEqual(self.readers(), ["ada"])

    def test_a_group_of_others_cannot_be_selected(self):
        response = self.upload(who="some", groups=[self.board.pk])
        self.assertContains(response, "You can choose only groups you belong to.", status_code=422)
        self.assertNotContains(self.client.get("/documents/add/"), "Board")
        self.assertEqual(Document.objects.count(), 0)

    def test_staff_can_select_any_group(self):
        self.user.is_staff = True
        self.user.save()
        self.upload(who="some", groups=[self.board.pk])
        self.assertEqual(audience_of(Document.objects.get()).group_ids, {self.board.pk})

    def test_unknown_and_disabled_names_are_refused_and_the_form_is_kept(self):
        self.colleague.is_active = False
        self.colleague.save()
        response = self.upload(who="some", people="bob, nobody", folder="People/Leave", groups=[self.hr.pk])
        self.assertContains(response, "There is no account named bob, nobody.", status_code=422)
        for kept in ('value="bob, nobody"', 'value="People/Leave"', 'value="some" checked'):
            self.assertContains(response, kept, status_code=422)
        self.assertEqual(Document.objects.count(), 0)

    def test_sharing_with_nobody_is_an_error(self):
        self.assertContains(self.upload(who="some"), "Choose a group, name a person", status_code=422)

    def test_no_file_and_no_rights_are_refused(self):
        response = self.client.post("/documents/add/", {"who": "me"})
        self.assertContains(response, "Choose at least one file.", status_code=422)
        response = self.client.post("/documents/add/", {"file": [text_file()]})
        self.assertContains(response, "Choose who can read it.", status_code=422)
        self.assertEqual(Document.objects.count(), 0)

    def test_several_files_get_a_folder_and_a_category(self):
        self.upload(text_file("a.md"), text_file("b.md"), folder=" /People//Leave/ ", category="rules")
        found = Document.objects.order_by("name").values_list("name", "folder", "category", "status")
        self.assertEqual(
            list(found),
            [(name, "People/Leave", "rules", "waiting") for name in ("a.md", "b.md")],
        )

    @override_settings(DOCUMENT_MAX_BYTES=2_000_000)
    def test_a_refused_file_is_named_with_the_limit_and_does_not_stop_the_others(self):
        response = self.upload(text_file("good.md"), text_file("big.md", b"x" * 2_000_001), folder="People")
        self.assertContains(response, "<bdi>big.md</bdi>: The file is larger than 2 MB", status_code=422)
        self.assertContains(response, "The other file was added.", status_code=422)
        self.assertContains(response, 'value="People"', status_code=422)
        self.assertEqual(Document.objects.get().name, "good.md")

    def test_the_script_gets_json(self):
        reply = self.upload(accept="application/json")
        self.assertEqual(reply.status_code, 201)
        document = Document.objects.get()
        self.assertEqual(reply.json()["documents"][0]["url"], f"/documents/{document.public_id}/")
        second = self.upload(text_file("second.md"), accept="application/json").json()["documents"][0]
        self.assertIn("1 document ahead.", second["detail"])
        Document.objects.update(status=Document.Status.READY)
        other = self.upload(text_file("second.md", b"Other words."), accept="application/json")
        again = other.json()["documents"][0]
        self.assertEqual((again["outcome"], again["words"]), ("replaced", "Waiting"))
        reply = self.upload(accept="application/json", who="some", people="nobody")
        self.assertEqual(reply.status_code, 422)
        self.assertEqual(reply.json()["problems"], ["There is no account named nobody."])

    def test_only_folders_of_readable_documents_are_suggested(self):
        self.upload(folder="Secret project")
        self.client.force_login(self.stranger)
        self.assertNotContains(self.client.get("/documents/add/"), "Secret project")


@override_settings(MEDIA_ROOT=FOLDER)
class ChangingTests(TestCase):
    def setUp(self):
        self.hr = Group.objects.create(name="HR")
        self.owner = make_user("ada")
        self.people = [make_user(groups=["HR"]) for _ in range(3)]
        self.client.force_login(self.owner)
        self.client.post("/documents/add/", {"who": "me", "file": [text_file()]})
        self.document = Document.objects.get()
        self.path = f"/documents/{self.document.public_id}/"

    def audience(self):
        return audience_of(Document.objects.get(pk=self.document.pk))

    def change(self, **values):
        return self.client.post(f"{self.path}rights/", values)

    def test_adding_readers_asks_once_with_the_number_of_people(self):
        response = self.change(who="everyone")
        self.assertRegex(
            response.content.decode(), r"4 people\s+will be able to read this and get answers from it."
        )
        self.assertFalse(self.audience().everyone)
        self.assertRedirects(self.change(who="everyone", confirmed="yes"), self.path)
        self.assertTrue(self.audience().everyone)

    def test_the_confirmation_keeps_the_selected_readers(self):
        self.owner.groups.add(self.hr)
        name = self.people[0].username
        response = self.change(who="some", groups=[self.hr.pk], people=name)
        self.assertContains(response, f'<input type="hidden" name="groups" value="{self.hr.pk}">')
        self.assertContains(response, f'<input type="hidden" name="people" value="{name}">')
        self.change(who="some", groups=[self.hr.pk], people=name, confirmed="yes")
        self.assertEqual(
            self.audience(), Audience(False, frozenset({self.people[0].pk}), frozenset({self.hr.pk}))
        )

    def test_removing_readers_needs_no_confirmation(self):
        set_audience(self.document, Audience(everyone=True))
        self.assertRedirects(self.change(who="me"), self.path)
        self.assertEqual(self.audience(), Audience())

    def test_a_group_that_already_has_access_can_stay_even_if_the_owner_is_not_in_it(self):
        set_audience(self.document, Audience(group_ids=frozenset({self.hr.pk})))
        self.assertContains(self.client.get(self.path), "HR")
        self.change(who="some", groups=[self.hr.pk])
        self.assertEqual(self.audience().group_ids, {self.hr.pk})

    def test_a_group_of_others_cannot_be_added(self):
        response = self.change(who="some", groups=[self.hr.pk], confirmed="yes")
        self.assertContains(response, "You can choose only groups you belong to.", status_code=422)
        self.assertEqual(self.audience(), Audience())

    def test_staff_who_remove_their_own_access_are_sent_to_the_list(self):
        staff = make_user("sam", is_staff=True, is_superuser=True)
        set_audience(self.document, Audience(everyone=True))
        self.client.force_login(staff)
        self.assertRedirects(self.change(who="me"), "/documents/")

    def test_a_document_can_be_read_again_only_when_it_is_not_being_read(self):
        Document.objects.update(status=Document.Status.FAILED, reason="It has a password.")
        self.client.post(f"{self.path}again/")
        self.document.refresh_from_db()
        self.assertEqual((self.document.status, self.document.reason), ("waiting", ""))
        response = self.client.post(f"{self.path}again/", follow=True)
        self.assertContains(response, "already being read")

    def test_deleting_asks_first_and_then_removes_everything(self):
        self.assertContains(self.client.get(f"{self.path}delete/"), "This cannot be undone.")
        self.assertTrue(Document.objects.exists())
        self.assertRedirects(self.client.post(f"{self.path}delete/"), "/documents/")
        self.assertFalse(Document.objects.exists())
        self.assertEqual(self.client.get(self.path).status_code, 404)
