"""Archives and messages: each file in them is a separate document, with the rights of the whole."""

import tempfile
from datetime import date
from io import StringIO
from pathlib import Path
from unittest import mock

import pytest
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from django.test import TestCase, TransactionTestCase, override_settings
from procrastinate.contrib.django.models import ProcrastinateJob

from chatsite.accounts.models import User, WebhookDelivery, WebhookEndpoint
from chatsite.db.threads import reading_as
from ingestion import documents
from ingestion.access.explain import explain
from ingestion.access.lists import Audience, change_rights
from ingestion.bulk import changes
from ingestion.details import Details
from ingestion.indexing import parts, reading
from ingestion.models import Document, Passage
from ingestion.parsing.process import Interruption
from ingestion.search import scopes
from ingestion.tests import building
from ingestion.tests.archives import Archives
from ingestion.tests.media import forget_jobs, principal, stored_bytes
from ingestion.tests.parsing.test_reading_other_formats import message

LEAVE = "# Leave\n\nFive days may be carried over."
BOATS = "# Boats\n\nThe ferry leaves at nine."


@pytest.mark.slow
class PartsTests(Archives, TestCase):
    def test_each_file_of_an_archive_is_a_document_with_the_properties_of_the_archive(self):
        group = Group.objects.create(name="board")
        whole = self.put(
            {"a.txt": "Words.", "minutes/leave.md": LEAVE, "run.exe": b"MZ"},
            folder="hr",
            category="Rules",
            audience=Audience(group_ids=frozenset({group.pk})),
            details=Details(labels=["2026"], valid_until=date(2030, 1, 1), source_url="https://example.org"),
        )
        self.assertEqual((whole.status, whole.version, whole.passage_count), ("ready", 1, 0))
        self.assertEqual(whole.left_out, [["run.exe", "files of this kind cannot be read"]])
        found = self.parts(whole)
        self.assertEqual(
            {path: (part.folder, part.name, part.status) for path, part in found.items()},
            {
                "a.txt": ("hr/board.zip", "a.txt", "waiting"),
                "minutes/leave.md": ("hr/board.zip/minutes", "leave.md", "waiting"),
            },
        )
        for part in found.values():
            for name in ("access_list_id", "owner_id", "category", "labels", "valid_until"):
                self.assertEqual(getattr(part, name), getattr(whole, name), name)
        self.read_all()
        part = self.parts()["minutes/leave.md"]
        self.assertEqual((part.status, part.title, stored_bytes(part)), ("ready", "Leave", LEAVE.encode()))

    def test_a_message_and_each_of_its_attachments_are_documents(self):
        whole = self.put(message(("boats.md", BOATS.encode()), ("empty.txt", b"")), "plan.eml", folder="mail")
        self.read_all()
        texts = "\n".join(whole.passages.values_list("content", flat=True))
        self.assertIn("Attachments: boats.md, empty.txt", texts)
        self.assertNotIn("nine.\n\nThe ferry", texts)
        found = self.parts(whole)
        self.assertEqual(found["boats.md"].folder, "mail/plan.eml")
        self.assertEqual((found["boats.md"].status, found["empty.txt"].status), ("ready", "failed"))
        self.assertEqual(found["empty.txt"].reason, "The file is empty.")

    def test_an_archive_stored_as_one_document_stays_so_until_it_is_read_again(self):
        whole = self.put({"a.txt": "Words."}, read=False)
        Document.objects.filter(pk=whole.pk).update(status="ready", version=1)
        Passage.objects.create(document=whole, position=0, anchor="file=a.txt", content="Words.")
        self.assertEqual(self.parts(), {})
        documents.retry(whole)
        ProcrastinateJob.objects.filter(pk=ProcrastinateJob.objects.order_by("pk").first().pk).delete()
        self.read_all()
        self.assertEqual((whole.passages.count(), self.parts(whole)["a.txt"].status), (0, "ready"))

    def test_a_new_version_of_an_archive_changes_only_its_changed_files(self):
        whole = self.put({"same.md": LEAVE, "other.md": BOATS, "gone.md": "Old."})
        self.read_all()
        before = self.parts(whole)
        with self.captureOnCommitCallbacks(execute=True):
            self.put({"same.md": LEAVE, "other.md": f"{BOATS}\n\nAnd at ten.", "new.md": "New."})
        waiting = self.parts(whole)
        self.assertEqual(
            {path: part.status for path, part in waiting.items()},
            {"same.md": "ready", "other.md": "waiting", "new.md": "waiting"},
        )
        self.assertIn("nine", waiting["other.md"].passages.get().content)
        with self.captureOnCommitCallbacks(execute=True):
            self.read_all()
        after = self.parts(whole)
        self.assertEqual(
            {path: part.version for path, part in after.items()}, {"same.md": 1, "other.md": 2, "new.md": 1}
        )
        self.assertEqual(
            [after[path].public_id for path in ("same.md", "other.md")],
            [before[path].public_id for path in ("same.md", "other.md")],
        )
        self.assertIn("ten", after["other.md"].passages.get().content)
        self.assertFalse(Path(self.media, before["gone.md"].file.name).exists())
        self.assertEqual(self.stored(), Document.objects.count())

    def stored(self):
        return sum(path.is_file() for path in Path(self.media).rglob("*"))

    def test_a_file_that_failed_is_read_again_with_its_archive(self):
        whole = self.put({"a.txt": "Words."})
        self.read_all()
        Document.objects.filter(part_of=whole).update(status="failed")
        documents.retry(whole)
        self.read_all()
        self.assertEqual(self.parts(whole)["a.txt"].status, "ready")

    def test_a_broken_archive_leaves_the_former_one_and_its_parts(self):
        whole = self.put({"a.txt": "Words."})
        self.read_all()
        self.put(building.package({"b.txt": "Other." * 99})[:90])
        whole.refresh_from_db()
        self.assertEqual(whole.status, "failed")
        self.assertIn("the former one remains", whole.reason)
        self.assertEqual(list(self.parts(whole)), ["a.txt"])

    def test_parts_and_their_files_are_deleted_with_the_archive(self):
        inner = building.package({"deep.txt": "Words."})
        whole = self.put({"a.txt": "Words.", "inner.zip": inner})
        self.read_all()
        self.assertEqual(len(self.parts()), 3)
        with self.captureOnCommitCallbacks(execute=True):
            documents.delete_document(whole)
        self.assertEqual((Document.objects.count(), self.stored(), Passage.objects.count()), (0, 0, 0))

    def test_moving_an_archive_moves_its_parts(self):
        whole = self.put({"sub/a.txt": "Words."}, folder="hr")
        Document.objects.filter(pk=whole.pk).update(folder="archive/2026", category="Old", labels=["x"])
        part = self.parts()["sub/a.txt"]
        self.assertEqual(
            (part.folder, part.category, part.labels), ("archive/2026/board.zip/sub", "Old", ["x"])
        )

    def test_transferring_an_archive_transfers_its_parts(self):
        whole = self.put({"a.txt": "Words."})
        documents.transfer_ownership(self.parts()["a.txt"], self.eve)
        self.assertEqual(self.parts()["a.txt"].owner, self.ann)
        documents.transfer_ownership(whole, self.eve)
        part = self.parts()["a.txt"]
        self.assertEqual(part.owner, self.eve)
        self.assertEqual(part.access_list_id, Document.objects.get(pk=whole.pk).access_list_id)

    def test_the_scope_of_an_archive_or_its_folder_includes_the_parts(self):
        whole = self.put({"a.txt": "Words.", "inner.zip": building.package({"b.txt": "More."})}, folder="hr")
        reader = principal(self.ann)
        self.assertEqual(scopes.count_unread(reader, f"document:{whole.public_id}"), 2)
        self.read_all()
        texts = {self.parts()[name].pk for name in ("a.txt", "b.txt")}
        for scope in (f"document:{whole.public_id}", "folder:hr/board.zip"):
            self.assertLessEqual(texts, set(scopes.documents_in(reader, scope)), scope)
        self.assertEqual(scopes.documents_in(principal(self.eve), f"document:{whole.public_id}"), [])


@pytest.mark.slow
class RightsTests(Archives, TestCase):
    def readable(self, user):
        with reading_as(user.pk):
            return sorted(Document.objects.values_list("name", flat=True))

    def test_a_stranger_finds_nothing_of_an_archive(self):
        self.put({"a.txt": "The canary sings.", "inner.zip": building.package({"b.txt": "More."})})
        self.read_all()
        self.assertEqual(self.readable(self.ann), ["a.txt", "b.txt", "board.zip", "inner.zip"])
        self.assertEqual(self.readable(self.eve), [])
        with reading_as(self.eve.pk):
            self.assertEqual(Passage.objects.count(), 0)
        part = self.parts()["a.txt"]
        self.client.force_login(self.eve)
        for address in (f"/documents/{part.public_id}/", f"/content/{part.public_id}/a.txt"):
            self.assertEqual(self.client.get(address).status_code, 404, address)
        self.client.force_login(self.ann)
        self.assertEqual(self.client.get(f"/content/{part.public_id}/a.txt").status_code, 200)

    def test_parts_get_the_readers_of_the_archive_at_the_same_moment(self):
        whole = self.put({"a.txt": "Words.", "inner.zip": building.package({"b.txt": "More."})})
        self.read_all()
        with_eve = Audience(user_ids=frozenset({self.eve.pk}))
        change_rights(self.ann, whole, with_eve)
        self.assertEqual(len(self.readable(self.eve)), 4)
        self.assertTrue(explain(self.eve, self.parts()["b.txt"]).readable)
        change_rights(self.ann, Document.objects.get(pk=whole.pk), Audience())
        self.assertEqual(self.readable(self.eve), [])

    def test_removing_ones_own_right_removes_it_from_the_parts(self):
        whole = self.put({"a.txt": "Words."}, audience=Audience(user_ids=frozenset({self.eve.pk})))
        with reading_as(self.eve.pk):
            change_rights(self.eve, Document.objects.get(pk=whole.pk), Audience())
        self.assertEqual(self.readable(self.eve), [])
        self.assertEqual(self.readable(self.ann), ["a.txt", "board.zip"])

    def test_new_readers_of_a_new_version_never_see_the_former_version_of_a_part(self):
        whole = self.put({"a.txt": "The secret canary.", "b.txt": "Same."})
        self.read_all()
        former = self.parts()["a.txt"]
        wider = Audience(user_ids=frozenset({self.eve.pk}))
        self.put({"a.txt": "Nothing secret.", "b.txt": "Same."}, audience=wider)
        self.assertEqual(self.readable(self.eve), ["a.txt", "b.txt", "board.zip"])
        part = self.parts(whole)["a.txt"]
        self.assertEqual(
            (part.public_id, part.version, stored_bytes(part)), (former.public_id, 0, b"Nothing secret.")
        )
        with reading_as(self.eve.pk):
            self.assertEqual([row.content for row in Passage.objects.all()], ["Same."])
        self.read_all()
        with reading_as(self.eve.pk):
            self.assertEqual({row.content for row in Passage.objects.all()}, {"Same.", "Nothing secret."})

    def test_a_part_is_changed_and_deleted_only_with_its_archive(self):
        self.put({"a.txt": "Words."}, audience=Audience(user_ids=frozenset({self.eve.pk})))
        self.read_all()
        part = self.parts()["a.txt"]
        self.client.force_login(self.ann)
        page = f"/documents/{part.public_id}/"
        for address, form in (
            (f"{page}rights/", {"who": "everyone"}),
            (f"{page}details/", {"title": "Mine"}),
            (f"{page}delete/", {}),
        ):
            self.assertEqual(self.client.post(address, form).status_code, 403, address)
        several = {"act": "delete", "document": str(part.public_id), "confirmed": "yes"}
        self.assertContains(self.client.post("/documents/several/", several, follow=True), "It is part of")
        for method in ("patch", "delete"):
            response = getattr(self.client, method)(
                f"/api/documents/{part.public_id}", {"everyone": True}, content_type="application/json"
            )
            self.assertContains(response, "It is part of", status_code=403)
        self.assertEqual(self.client.post(f"{page}again/").status_code, 302)
        self.assertEqual(self.parts()["a.txt"].access_list_id, part.access_list_id)

    def test_an_administrator_changes_a_part_only_with_its_archive(self):
        self.put({"a.txt": "Words."})
        part = self.parts()["a.txt"]
        admin = User.objects.create_superuser("root")
        self.client.force_login(admin)
        address = f"/admin/ingestion/document/{part.pk}/change/"
        self.assertContains(self.client.get(address), "board.zip")
        self.assertEqual(self.client.post(address, {"everyone": "on"}).status_code, 403)
        change = changes.choose(admin, [part])
        changes.start(change, "category", {"category": "Other"})
        changes.work(change.pk)
        self.assertEqual(change.items.get().reason, changes.PART)

    def test_readers_removed_with_a_new_version_lose_the_parts_at_once(self):
        self.put({"a.txt": "Words."}, audience=Audience(user_ids=frozenset({self.eve.pk})))
        self.read_all()
        self.put({"a.txt": "Other words."}, read=False)
        self.assertEqual(self.readable(self.eve), [])


@pytest.mark.slow
class ShownTests(Archives, TestCase):
    def setUp(self):
        super().setUp()
        self.whole = self.put({"a.txt": "Words.", "sub/empty.txt": "", "run.exe": b"MZ"}, folder="hr")
        self.client.force_login(self.ann)
        self.page = f"/documents/{self.whole.public_id}/"

    def states(self):
        return self.client.get(f"/documents/status/?id={self.whole.public_id}").json()["documents"][0]

    def test_the_page_of_an_archive_lists_its_files_and_the_state_of_the_whole(self):
        self.assertContains(self.client.get(self.page), "Reading file 1 of 2")
        self.assertTrue(self.states()["unfinished"])
        self.read_all()
        page = self.client.get(self.page)
        for words in ("1 of 2 ready", "sub/empty.txt", "The file is empty.", "run.exe", "cannot be read"):
            self.assertContains(page, words)
        self.assertContains(page, f"/documents/{self.parts()['a.txt'].public_id}/")
        self.assertFalse(self.states()["unfinished"])

    def test_the_page_of_a_file_leads_back_to_its_archive(self):
        self.read_all()
        page = self.client.get(f"/documents/{self.parts()['a.txt'].public_id}/")
        self.assertContains(page, self.page)
        self.assertNotContains(page, 'id="rights"')
        self.assertContains(page, "Read again")

    def test_the_list_shows_the_archive_as_a_folder(self):
        self.read_all()
        page = self.client.get("/documents/?folder=hr")
        self.assertContains(page, "folder=hr%2Fboard.zip")
        self.assertContains(self.client.get("/documents/?folder=hr/board.zip"), "a.txt")

    def test_the_api_relates_parts_and_archives(self):
        self.read_all()
        address = f"/api/documents/{self.whole.public_id}"
        found = self.client.get(address).json()
        self.assertEqual(found["parts"], {"total": 2, "ready": 1, "failed": 1})
        self.assertEqual(
            found["left_out"], [{"path": "run.exe", "reason": "files of this kind cannot be read"}]
        )
        self.assertIsNone(found["part_of"])
        inside = self.client.get(f"/api/documents?part_of={self.whole.public_id}").json()
        self.assertEqual({each["part_path"] for each in inside}, {"a.txt", "sub/empty.txt"})
        self.assertEqual({each["part_of"] for each in inside}, {str(self.whole.public_id)})
        self.client.force_login(self.eve)
        self.assertEqual(self.client.get(f"/api/documents?part_of={self.whole.public_id}").json(), [])

    def test_a_webhook_reports_each_file_that_is_ready(self):
        endpoint = WebhookEndpoint.objects.create(
            owner=self.ann, url="https://example.org/", events=["document.ready", "document.failed"]
        )
        self.read_all()
        told = {
            (each.event, each.data["document_id"])
            for each in WebhookDelivery.objects.filter(endpoint=endpoint)
        }
        parts = self.parts()
        self.assertEqual(
            told,
            {
                ("document.ready", str(parts["a.txt"].public_id)),
                ("document.failed", str(parts["sub/empty.txt"].public_id)),
            },
        )


@pytest.mark.slow
class LimitsTests(Archives, TestCase):
    def test_the_files_count_against_the_quota_of_their_owner(self):
        with override_settings(USER_MAX_DOCUMENTS=3):
            whole = self.put({f"{n}.txt": "Words." for n in range(3)}, within_quota=True)
        self.assertEqual(whole.status, "failed")
        self.assertEqual(
            whole.reason,
            "You may keep 3 documents and have 1, and this file holds 3 more. Delete some first.",
        )
        self.assertEqual((self.parts(), len([*Path(self.media).rglob("*/*/*")])), ({}, 1))
        with override_settings(USER_MAX_BYTES=1_000):
            whole = self.put({"a.txt": "x" * 2_000, "b.txt": "x" * 2_000}, "bytes.zip", within_quota=True)
        self.assertIn("the files in it have 3.9", whole.reason.replace("\xa0", " "))

    def test_archives_in_an_archive_share_its_limits(self):
        inner = building.package({f"{n}.txt": "Words." for n in range(4)})
        self.put({f"{n}.zip": inner for n in range(3)})
        with mock.patch.object(parts, "MAX_FILES", 12):
            self.read_all()
        found = self.parts()
        self.assertEqual([found[f"{n}.zip"].status for n in range(3)], ["ready", "ready", "failed"])
        self.assertIn("holds more than 12 files", found["2.zip"].reason)

    def test_nested_archives_are_unpacked_to_a_maximum_depth(self):
        data = building.package({"a.txt": "The innermost."})
        for _ in range(4):
            data = building.package({"inner.zip": data, "b.txt": "Words."})
        self.put(data)
        self.read_all()
        deepest = Document.objects.get(part_of__part_of__isnull=False, name="inner.zip")
        self.assertEqual(deepest.status, "failed")
        self.assertIn("nested too deeply", deepest.reason)
        self.assertEqual(Document.objects.filter(name="b.txt").count(), 2)

    def test_a_file_that_is_too_large_is_left_out(self):
        with override_settings(DOCUMENT_MAX_BYTES=1_000):
            whole = self.put({"a.txt": "Words.", "b.txt": "x" * 1_001})
        self.assertEqual(list(self.parts()), ["a.txt"])
        self.assertEqual(whole.left_out, [["b.txt", "it is larger than 0.001 MB"]])

    @pytest.mark.slow
    def test_three_hundred_files_do_not_keep_another_persons_file_waiting(self):
        forget_jobs()
        self.put({f"{n}.txt": f"Text {n}." for n in range(300)})
        mine = self.put(b"# Mine\n\nWords.", "mine.md", owner=self.eve, read=False)
        order = list(ProcrastinateJob.objects.filter(status="todo").order_by("-priority", "pk"))
        places = [
            job.args["document_id"]
            for job in order
            if job.args["document_id"] != self.parts()["0.txt"].part_of_id
        ]
        self.assertLessEqual(places.index(mine.pk), 1)
        self.assertEqual(len(places), 301)


class FaultsTests(Archives, TransactionTestCase):
    def setUp(self):
        super().setUp()
        forget_jobs()
        self.addCleanup(forget_jobs)

    @pytest.mark.slow
    def test_a_new_version_appears_only_when_it_is_complete(self):
        whole = self.put({"a.txt": "Words.", "gone.txt": "Old."})
        self.read_all()
        away = mock.patch.object(parts, "_claim", side_effect=ConnectionError)
        with away, self.assertRaises(documents.TemporaryFailure):
            self.put({"a.txt": "Changed.", "new.txt": "New."})
        self.assertEqual(set(self.parts(whole)), {"a.txt", "gone.txt"})
        self.read_all()
        self.assertEqual(set(self.parts(whole)), {"a.txt", "new.txt"})
        self.assertEqual(self.parts(whole)["a.txt"].version, 2)

    def test_an_interrupted_reading_keeps_no_file(self):
        whole = self.put({"a.txt": "Words."}, read=False)
        interruption = Interruption()
        with mock.patch.object(reading, "prepare", side_effect=lambda *_: interruption.check()):
            store = parts.store

            def stored_then_stopped(*arguments):
                new = store(*arguments)
                interruption.request()
                return new

            with mock.patch.object(parts, "store", stored_then_stopped), self.assertRaises(documents.Yielded):
                documents.read_document(whole.pk, None, interruption)
        self.assertEqual(len([path for path in Path(self.media).rglob("*") if path.is_file()]), 1)

    def test_an_archive_that_is_deleted_while_it_is_read_leaves_nothing(self):
        whole = self.put({"a.txt": "Words."}, read=False)
        store = parts.store

        def stored_then_deleted(*arguments):
            new = store(*arguments)
            documents.delete_document(whole)
            return new

        with mock.patch.object(parts, "store", stored_then_deleted):
            documents.read_document(whole.pk)
        self.assertEqual(Document.objects.count(), 0)
        self.assertEqual([path for path in Path(self.media).rglob("*") if path.is_file()], [])


@pytest.mark.slow
class CommandTests(Archives, TransactionTestCase):
    def setUp(self):
        super().setUp()
        forget_jobs()
        self.addCleanup(forget_jobs)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_command(self, *arguments):
        out = StringIO()
        try:
            call_command(*arguments, stdout=out, stderr=StringIO())
        except CommandError as error:
            out.write(f"CommandError: {error}")
        return out.getvalue()

    def test_ingest_reads_the_files_of_an_archive_and_lists_failures(self):
        (self.folder / "a.zip").write_bytes(
            building.package({"a.txt": "Words.", "empty.txt": "", "x.exe": b"MZ"})
        )
        said = self.run_command("ingest", str(self.folder), "--everyone")
        self.assertIn("2 documents ready, 1 passage; 1 failed.", said)
        self.assertIn("a.zip/empty.txt: The file is empty.", said)
        self.assertEqual(ProcrastinateJob.objects.filter(status="todo").count(), 0)

    def test_a_mirrored_archive_follows_its_folder(self):
        path = self.folder / "sub" / "a.zip"
        path.parent.mkdir()
        path.write_bytes(building.package({"a.txt": "Words.", "b.txt": "More."}))
        self.run_command("sync", str(self.folder), "--everyone", "--now")
        self.assertEqual({part.folder for part in self.parts().values()}, {"sub/a.zip"})
        self.assertEqual({part.status for part in self.parts().values()}, {"ready"})
        path.write_bytes(building.package({"a.txt": "Changed words."}))
        self.run_command("sync", str(self.folder), "--everyone", "--now")
        self.assertEqual(list(self.parts()), ["a.txt"])
        self.assertIn("Changed", self.parts()["a.txt"].passages.get().content)
        path.unlink()
        self.run_command("sync", str(self.folder), "--everyone", "--allow-empty")
        self.assertEqual(Document.objects.count(), 0)
