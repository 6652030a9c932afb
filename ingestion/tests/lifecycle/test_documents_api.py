"""/api/documents: lists, states and passages for programs, under the rights of their caller."""

import errno
import io
import runpy
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from pathlib import Path
from unittest import mock
from urllib.error import HTTPError
from urllib.parse import quote
from uuid import uuid4

import pytest
from django.conf import settings
from django.contrib.auth.models import Group
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import TestCase, TransactionTestCase
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart
from procrastinate.contrib.django.models import ProcrastinateJob

from chatsite.accounts.models import ApiKey
from chatsite.db.threads import reading_everything
from ingestion import documents
from ingestion.access.lists import Audience, audience_of
from ingestion.models import Document, ExternalId
from ingestion.portal import content
from ingestion.storage import files
from ingestion.tests.factories import make_document, make_user


class DocumentsApiTestCase(TestCase):
    def setUp(self):
        self.user, self.eve = make_user("ada"), make_user("eve")
        self.others = make_document("guide.md", ["One.", "Two.", "Three."], everyone=True, folder="rules")
        self.own = make_document("own.md", owner=self.user, category="hr")
        self.secret_document = make_document("secret.md", users=[self.eve])
        self.headers = self.key("documents:read", "documents:write")

    def key(self, *scopes, of=None):
        return {"Authorization": f"Bearer {ApiKey.objects.issue(of or self.user, 'test', scopes=scopes)[1]}"}

    def get(self, path="", headers=None):
        return self.client.get(f"/api/documents{path}", headers=headers or self.headers)


class DocumentsApiTests(DocumentsApiTestCase):
    def names(self, query=""):
        answer = self.get(query)
        self.assertEqual(answer.status_code, 200, answer.content)
        return [each["name"] for each in answer.json()]

    def test_the_list_has_the_callers_readable_documents_newest_first(self):
        self.assertEqual(self.names(), ["own.md", "guide.md"])
        make_document("failed.md", everyone=True)
        Document.objects.filter(name="failed.md").update(version=0, status="failed")
        self.assertEqual(self.names(), ["own.md", "guide.md"])

    def test_a_refusal_says_how_to_add_a_document_and_how_to_send_a_key(self):
        refused = self.client.post("/api/documents", headers=self.headers)
        self.assertEqual((refused.status_code, refused["Allow"]), (405, "GET, HEAD, OPTIONS"))
        self.assertEqual(refused.json()["detail"], "Add a document with PUT /api/documents/{name}.")
        refused = self.client.get("/api/documents")
        self.assertEqual((refused.status_code, refused["WWW-Authenticate"]), (401, "Bearer"))
        words = "Send an API key in the header “Authorization: Bearer chs_…”, or sign in."
        self.assertEqual(refused.json()["detail"], words)

    def test_readers_are_shown_only_to_callers_who_may_change_them(self):
        make_document(
            "shared.md", owner=self.user, users=[self.eve], groups=[Group.objects.create(name="Crew")]
        )
        told = {each["name"]: each["readers"] for each in self.get().json()}
        self.assertIsNone(told["guide.md"])
        crew = {"everyone": False, "guests": False, "users": ["eve"], "groups": ["Crew"]}
        self.assertEqual(told["shared.md"], crew)
        self.assertEqual(told["own.md"], crew | {"users": [], "groups": []})

    def test_an_unknown_choice_is_refused_with_the_allowed_ones(self):
        answer = self.get("?status=done")
        self.assertEqual(answer.status_code, 400)
        self.assertEqual(
            answer.json()["errors"][0]["detail"],
            "This must be one of “waiting”, “reading”, “indexing”, “ready”, “failed”.",
        )

    def test_filters_narrow_the_list(self):
        for query in ("?own=true", "?category=hr", "?q=OWN", "?folder="):
            self.assertIn("own.md", self.names(query), query)
        self.assertEqual(self.names("?folder=rules"), ["guide.md"])
        self.assertEqual(self.names("?own=true&folder=rules"), [])
        self.assertEqual(self.names("?status=failed"), [])
        self.assertEqual(self.names("?status=&category=&q="), ["own.md", "guide.md"])
        self.assertEqual(self.get("?folders=rules").json()["errors"][0]["pointer"], "/folders")

    def test_a_search_by_name_uses_its_first_ten_words(self):
        self.assertEqual(self.names(f"?q=own+{'o+w+n+' * 30}"), ["own.md"])
        self.assertEqual(self.names("?q=o+w+n+.+m+d+ow+wn+nowhere"), [])
        self.assertEqual(self.names("?q=o+w+n+.+m+d+ow+wn+md+own+nowhere"), ["own.md"])

    def test_the_next_link_leads_through_all_pages(self):
        first = self.get("?limit=1&q=md")
        self.assertEqual([each["name"] for each in first.json()], ["own.md"])
        address = first.headers["Link"].partition(">")[0].removeprefix("</api/documents")
        second = self.get(address)
        self.assertEqual([each["name"] for each in second.json()], ["guide.md"])
        self.assertNotIn("Link", second.headers)

    def test_one_document_has_its_state_and_its_text(self):
        Document.objects.filter(pk=self.own.pk).update(status="reading", progress_done=3, progress_total=9)
        told = self.get(f"/{self.own.public_id}").json()
        self.assertEqual((told["status"], told["progress"]), ("reading", {"done": 3, "total": 9}))
        self.assertEqual((told["own"], told["category"], told["version"]), (True, "hr", 1))
        self.assertTrue(told["url"].endswith(f"/content/{self.own.public_id}/own.md"))
        passages = self.get(f"/{self.others.public_id}/passages?start=1&limit=1").json()
        self.assertEqual([each["content"] for each in passages], ["Two."])

    def test_an_unreadable_document_looks_like_a_missing_one(self):
        for ending in ("", "/passages"):
            closed = self.get(f"/{self.secret_document.public_id}{ending}")
            unknown = self.get(f"/{uuid4()}{ending}")
            self.assertEqual((closed.status_code, closed.content), (404, unknown.content))
        gone = self.client.delete(f"/api/documents/{self.secret_document.public_id}", headers=self.headers)
        self.assertEqual(gone.status_code, 404)
        self.assertTrue(Document.objects.filter(pk=self.secret_document.pk).exists())

    def test_only_the_callers_own_documents_can_be_deleted(self):
        path = "/api/documents/{}".format
        refused = self.client.delete(path(self.others.public_id), headers=self.headers)
        self.assertEqual(refused.status_code, 403)
        self.assertEqual(self.client.delete(path(self.own.public_id), headers=self.headers).status_code, 204)
        self.assertEqual(self.names(), ["guide.md"])

    def test_deleting_needs_its_scope_and_so_does_reading(self):
        path = f"/api/documents/{self.own.public_id}"
        read_only = self.client.delete(path, headers=self.key("documents:read"))
        self.assertEqual(read_only.status_code, 403)
        self.assertEqual(self.get("", self.key("documents:write", "chat", "search")).status_code, 403)
        self.assertEqual(self.names("?own=true"), ["own.md"])

    def test_a_wrong_parameter_is_named(self):
        for name, value in {"limit": "201", "cursor": "x", "status": "odd", "q": "%00", "own": "x"}.items():
            answer = self.get(f"?{name}={value}")
            self.assertEqual(answer.status_code, 400, name)
            self.assertEqual([each["pointer"] for each in answer.json()["errors"]], [f"/{name}"])


class PutTests(DocumentsApiTestCase):
    def put(self, name, content=b"# Leave\n\nFive days.", query="name=leave.md", headers=None, **form):
        address = f"/api/documents/{name}?{query}" if not form else f"/api/documents/{name}"
        headers = headers or self.headers
        if form:
            body = encode_multipart(BOUNDARY, {"file": SimpleUploadedFile("leave.md", content)} | form)
            return self.client.put(address, body, content_type=MULTIPART_CONTENT, headers=headers)
        return self.client.put(address, content, content_type="text/markdown", headers=headers)

    def test_a_file_that_already_waits_is_not_queued_again(self):
        document = Document.objects.get(public_id=self.put("leave").json()["id"])
        documents.read_document(document.pk)
        new = b"# Leave\n\nSix days."
        outcomes = [self.put("leave", new).json()["outcome"] for _ in range(3)]
        self.assertEqual(outcomes, ["replaced", "unchanged", "unchanged"])
        jobs = ProcrastinateJob.objects.filter(lock=documents.lock_name(document.pk)).exclude(
            args__replacement=None
        )
        self.assertEqual(jobs.count(), 1)
        self.assertEqual(
            self.put("leave", new, query="name=leave.md&everyone=true").json()["outcome"], "replaced"
        )
        self.assertEqual(self.put("leave").json()["outcome"], "replaced", "the file that it still has")
        self.assertEqual(jobs.count(), 3)

    def test_the_file_name_in_the_form_supplies_a_missing_extension(self):
        self.assertEqual(self.put("wiki:leave", category="hr").json()["name"], "leave.md")
        self.assertEqual(self.put("days.txt", category="hr").json()["name"], "days.txt")
        self.assertEqual(self.put("plain", query="").json()["name"], "plain")

    def test_the_name_in_the_address_decides_between_adding_replacing_and_keeping(self):
        added = self.put("wiki:leave@1", query="name=leave.md&folder=wiki&category=hr")
        told = added.json()
        self.assertEqual((added.status_code, told["outcome"], told["status"]), (201, "added", "waiting"))
        self.assertEqual(
            (told["external_id"], told["folder"], told["category"]), ("wiki:leave@1", "wiki", "hr")
        )
        again = self.put("wiki:leave@1", query="name=leave.md&folder=wiki")
        self.assertEqual((again.status_code, again.json()["outcome"]), (200, "unchanged"))
        lock = documents.lock_name(Document.objects.get(public_id=told["id"]).pk)
        self.assertEqual(ProcrastinateJob.objects.filter(lock=lock).count(), 1, "one reading")
        moved = self.put("wiki:leave@1", b"# Leave\n\nSix days.", query="name=days-off.md&folder=rules")
        self.assertEqual((moved.json()["outcome"], moved.json()["id"]), ("replaced", told["id"]))
        self.assertEqual((moved.json()["name"], moved.json()["folder"]), ("days-off.md", "rules"))
        self.assertEqual(self.get("/wiki:leave@1").json()["id"], told["id"])
        self.assertEqual(
            self.client.delete("/api/documents/wiki:leave@1", headers=self.headers).status_code, 204
        )
        self.assertEqual(self.get("/wiki:leave@1").status_code, 404)

    def test_a_form_and_a_raw_body_have_the_same_effect(self):
        told = self.put("one", folder="wiki", everyone="true")
        self.assertEqual((told.status_code, told.json()["folder"]), (201, "wiki"))
        self.assertTrue(audience_of(Document.objects.get(public_id=told.json()["id"])).everyone)
        self.assertEqual(self.put("one", folder="wiki", everyone="true").json()["outcome"], "unchanged")

    def test_details_may_be_in_the_query_string_instead_of_the_form(self):
        body = encode_multipart(
            BOUNDARY, {"file": SimpleUploadedFile("leave.md", b"# Leave"), "folder": "wiki"}
        )
        values = {"content_type": MULTIPART_CONTENT, "headers": self.headers}
        told = self.client.put("/api/documents/one?everyone=true&labels=a&labels=b", body, **values)
        self.assertEqual((told.status_code, told.json()["folder"]), (201, "wiki"))
        self.assertEqual(told.json()["labels"], ["a", "b"])
        self.assertTrue(audience_of(Document.objects.get(public_id=told.json()["id"])).everyone)
        for query, named in (("everyone=true&folder=rules", "folder"), ("reader=ann", "reader")):
            refused = self.client.put(f"/api/documents/two?{query}", body, **values)
            self.assertEqual(refused.status_code, 400)
            self.assertEqual(refused.json()["errors"][0]["pointer"], f"/{named}")
        self.assertEqual(self.get("/two").status_code, 404)

    def test_names_are_separate_for_each_caller(self):
        mine = self.put("one", query="name=a.md&everyone=true").json()
        eve = self.key("documents:read", "documents:write", of=self.eve)
        self.assertEqual(self.get("/one", headers=eve).status_code, 404)
        theirs = self.put("one", b"Other.", query="name=a.md", headers=eve).json()
        self.assertNotEqual(theirs["id"], mine["id"])
        Document.objects.filter(public_id=mine["id"]).update(version=1, status="ready")
        seen = self.get(f"/{mine['id']}", headers=eve).json()
        self.assertEqual((seen["external_id"], seen["own"]), ("", False))

    def test_only_readers_that_the_caller_may_name_are_accepted(self):
        group = Group.objects.create(name="pursers")
        refused = self.put("one", query="name=a.md&groups=pursers")
        unknown = self.put("one", query="name=a.md&groups=nobody")
        self.assertEqual((refused.status_code, unknown.status_code), (400, 400))
        self.assertEqual(refused.json()["detail"], "You are not in a group named pursers.")
        self.assertEqual(refused.text.replace("pursers", "nobody"), unknown.text)
        self.assertEqual(refused.json()["errors"][0]["pointer"], "/groups")
        self.assertEqual(
            self.put("one", query="name=a.md&users=nobody").json()["errors"][0]["pointer"], "/users"
        )
        self.assertFalse(Document.objects.filter(name="a.md").exists())
        self.user.groups.add(group)
        told = self.put("one", query="name=a.md&groups=pursers&users=eve").json()
        document = Document.objects.get(public_id=told["id"])
        self.assertEqual(audience_of(document).group_ids, {group.pk})
        document = Document.objects.filter(public_id=told["id"])
        narrowed = self.client.patch(
            "/api/documents/one", {"users": ["eve"]}, "application/json", headers=self.headers
        )
        self.assertEqual(
            (narrowed.status_code, audience_of(document.get())),
            (200, Audience(user_ids=frozenset({self.eve.pk}))),
        )
        self.client.patch("/api/documents/one", {"category": "hr"}, "application/json", headers=self.headers)
        self.assertEqual(audience_of(document.get()).user_ids, {self.eve.pk})

    def test_invalid_input_is_refused_with_a_message_and_stores_nothing(self):
        before = Document.objects.count()
        for name, options, status in (
            (str(uuid4()), {}, 400),
            ("one", {"content": b""}, 400),
            ("one", {"query": f"name={'x' * 300}"}, 400),
            ("one", {"query": "name=a.md&everyone=perhaps"}, 400),
            ("one", {"headers": self.key("documents:read")}, 403),
            ("one", {"query": "name=a.md&tags=x"}, 400),
            ("one", {"query": "name=a.md&source_url=javascript:alert(1)"}, 400),
            ("one", {"query": "name=a.md&source_url=ftp://wiki.example/a"}, 400),
            ("one", {"query": "name=a.md&valid_until=tomorrow"}, 400),
            ("one", {"query": "name=a.md" + "&labels=x" * 21}, 400),
            ("a b", {}, 400),
            ("a%00b", {}, 400),
            ("a/b", {}, 400),
            ("a%2Fb", {}, 400),
        ):
            with self.subTest(name, **options):
                self.assertEqual(self.put(name, **options).status_code, status)
        for wrong in ("0", "1", "on", "null"):
            refused = self.put("one", query=f"name=a.md&everyone={wrong}")
            self.assertEqual(
                (refused.status_code, refused.json()["errors"][0]["pointer"]), (400, "/everyone")
            )
            self.assertEqual(self.put("one", everyone=wrong).status_code, 400)
        for path in (f"/{self.others.public_id}", f"/{self.secret_document.public_id}"):
            changed = self.client.patch(
                f"/api/documents{path}", {"everyone": True}, "application/json", headers=self.headers
            )
            self.assertEqual(changed.status_code, 404 if "secret" in path else changed.status_code)
            self.assertIn(changed.status_code, (403, 404))
        self.assertEqual(Document.objects.count(), before)

    def test_a_full_or_unavailable_storage_returns_a_retryable_error(self):
        for fault, status, seconds in (
            (OSError(errno.ENOSPC, "full"), 507, "10"),
            (files.StorageFault, 503, "2"),
        ):
            with (
                mock.patch.object(files, "store", side_effect=fault),
                self.assertLogs("django.request" if status == 507 else "ingestion.documents"),
            ):
                refused = self.put("one", query="name=a.md")
            self.assertEqual((refused.status_code, refused["Retry-After"]), (status, seconds))
        self.assertFalse(Document.objects.filter(name="a.md").exists())

    def test_an_unresponsive_storage_holds_no_database_connection(self):
        class ReadTimeout(OSError):
            """An error as HTTP libraries raise it: an OSError without an errno."""

        def hangs(*_):
            self.assertTrue(released.called)
            raise ReadTimeout("Read timed out.")

        with (
            mock.patch.object(documents, "release_connection") as released,
            mock.patch.object(default_storage, "save", side_effect=hangs),
            self.assertLogs("ingestion.documents") as logged,
        ):
            refused = self.put("one", query="name=a.md")
        self.assertEqual((refused.status_code, refused["Retry-After"]), (503, "2"))
        self.assertEqual(logged.output[0].count("\n"), 0)
        with (
            mock.patch.object(content, "release_connection") as released,
            mock.patch.object(default_storage, "open", side_effect=hangs),
            self.assertLogs("django.request"),
        ):
            file = self.client.get(f"/api/documents/{self.own.public_id}/file", headers=self.headers)
        self.assertEqual(file.status_code, 503)
        self.assertIn("Retry-After", file)

    def test_without_a_file_name_the_name_in_the_address_counts(self):
        for name, query in (("leave-1.md", "name="), ("leave-2.md", "")):
            put = self.put(name, query=query)
            self.assertEqual((put.status_code, put.json()["name"]), (201, name))

    def test_a_change_whose_member_has_the_wrong_type_is_refused(self):
        for wish, pointer in (
            ({"category": 7}, "/category"),
            ({"everyone": "true"}, "/everyone"),
            ({"everyone": 1}, "/everyone"),
            ({"users": [7]}, "/users/0"),
            ({"groups": [True]}, "/groups/0"),
        ):
            refused = self.client.patch(
                f"/api/documents/{self.own.public_id}", wish, "application/json", headers=self.headers
            )
            self.assertEqual((refused.status_code, refused.json()["errors"][0]["pointer"]), (400, pointer))

    def patch(self, name, changes):
        return self.client.patch(f"/api/documents/{name}", changes, "application/json", headers=self.headers)

    def test_title_labels_source_and_last_day_are_stored_kept_and_removed(self):
        source = "https://wiki.example/leave?page=1"
        query = f"name=leave.md&title=Days+off&labels=hr&labels=2027&labels=hr&source_url={quote(source)}"
        told = self.put("one", query=f"{query}&valid_until=2027-01-31").json()
        Document.objects.filter(public_id=told["id"]).update(title="Days off")
        told = self.get("/one").json()
        self.assertEqual(
            [told[name] for name in ("title", "labels", "source_url", "valid_until", "expired")],
            ["Days off", ["hr", "2027"], source, "2027-01-31", False],
        )
        self.assertEqual(self.put("one").json()["labels"], ["hr", "2027"], "left out, it stays")
        told = self.put("one", query="name=leave.md&labels=&valid_until=").json()
        self.assertEqual(
            (told["labels"], told["valid_until"], told["source_url"], told["outcome"]),
            ([], None, source, "replaced"),
        )
        told = self.patch("one", {"labels": ["sea"], "valid_until": "2026-01-31", "source_url": ""}).json()
        self.assertEqual((told["labels"], told["expired"], told["source_url"]), (["sea"], True, ""))
        for query, number in (
            ("label=sea", 1),
            ("label=hr", 0),
            ("valid=false", 1),
            ("valid=true&own=true", 1),
        ):
            self.assertEqual(len(self.get(f"?{query}").json()), number, query)
        self.assertEqual(len(self.get("?owner=ada").json()), 2)
        self.assertEqual(self.get("?owner=eve").json(), [])
        self.assertIsNone(self.patch("one", {"valid_until": ""}).json()["valid_until"])
        for change in ({"source_url": "data:text/html,x"}, {"valid_until": "soon"}, {"labels": ["x" * 51]}):
            self.assertEqual(self.patch("one", change).status_code, 400, change)

    def test_only_another_title_causes_a_new_reading(self):
        self.put("one")
        document = Document.objects.get(external_ids__external_id="one")
        jobs = ProcrastinateJob.objects.filter(lock=documents.lock_name(document.pk))
        Document.objects.filter(pk=document.pk).update(status="ready", version=1)
        self.assertEqual(self.put("one", query="name=leave.md&title=Days+off").json()["outcome"], "replaced")
        self.assertEqual((jobs.count(), Document.objects.get(pk=document.pk).status), (2, "waiting"))
        self.assertEqual(self.put("one", query="name=leave.md&title=Days+off").json()["outcome"], "unchanged")
        self.patch("one", {"title": "Days off"})
        self.assertEqual(jobs.count(), 2)


@pytest.mark.slow
class MirrorTests(DocumentsApiTestCase):
    """Run the program in docs/integrations unchanged; its requests go to Django's test client."""

    def send(self, request, timeout):
        headers = dict(request.header_items())
        content_type = headers.pop("Content-type")
        answer = self.client.generic(
            request.method, request.selector, request.data or b"", content_type, headers=headers
        )
        if answer.status_code >= 300:
            raise HTTPError(request.full_url, answer.status_code, "", {}, io.BytesIO(answer.content))
        return HTTPResponse(io.BytesIO(answer.content), answer.headers)

    def mirror(self, folder, *options):
        program = settings.BASE_DIR / "docs" / "integrations" / "mirror.py"
        environment = {"SITE": "http://testserver", "KEY": self.headers["Authorization"].partition(" ")[2]}
        out = io.StringIO()
        with (
            mock.patch.dict("os.environ", environment),
            mock.patch.object(sys, "argv", [str(program), str(folder), *options]),
            mock.patch("urllib.request.urlopen", self.send),
            redirect_stdout(out),
        ):
            try:
                runpy.run_path(str(program), run_name="__main__")
            finally:
                self.said = out.getvalue()
        return [" ".join(line.split()) for line in self.said.splitlines()]

    def test_a_folder_is_mirrored_with_its_readers_and_deletions(self):
        with tempfile.TemporaryDirectory() as above:
            folder = Path(above, "policies")
            (folder / "sea").mkdir(parents=True)
            (folder / "leave.md").write_text("Five days.")
            (folder / "sea" / "Watch keeping.md").write_text("Four hours.")
            told = self.mirror(folder, "--everyone")
            self.assertEqual(told, ["added leave.md", "added sea/Watch keeping.md"])
            stored = Document.objects.get(name="Watch keeping.md")
            self.assertEqual((stored.folder, audience_of(stored)), ("policies/sea", Audience(everyone=True)))
            (folder / "leave.md").write_text("Six days.")
            (folder / "sea" / "Watch keeping.md").unlink()
            told = self.mirror(folder)
            self.assertEqual((told[0], told[1][:16], len(told)), ("replaced leave.md", "deleted mirror:p", 2))
            self.assertFalse(Document.objects.filter(name="Watch keeping.md").exists())
            self.assertTrue(Document.objects.filter(name="own.md").exists(), "not of the folder")

    def test_an_empty_or_different_folder_deletes_nothing(self):
        with tempfile.TemporaryDirectory() as above:
            for parent in ("a", "b"):
                folder = Path(above, parent, "HR Übersicht")
                folder.mkdir(parents=True)
                (folder / f"{parent}.md").write_text("Words.")
                self.assertEqual(self.mirror(folder), [f"added {parent}.md"])
            (folder / "b.md").unlink()
            with self.assertRaisesMessage(SystemExit, "has no files. Nothing was changed."):
                self.mirror(folder)
            self.assertEqual(Document.objects.filter(name__in=["a.md", "b.md"]).count(), 2)

    def test_a_refused_file_is_reported_and_the_others_are_uploaded(self):
        with tempfile.TemporaryDirectory() as above:
            folder = Path(above, "policies")
            folder.mkdir()
            for name in ("a.md", "b.md"):
                (folder / name).write_text("Words.")
            self.mirror(folder)
            (folder / "a.md").write_bytes(b"")
            (folder / "b.md").write_text("Other words.")
            with self.assertRaisesMessage(SystemExit, "1 of 2 files were refused."):
                self.mirror(folder)
            self.assertRegex(self.said, r"refused +a\.md: The body is empty.*\nreplaced +b\.md\n")
            self.assertEqual(Document.objects.filter(name__in=["a.md", "b.md"]).count(), 2)
            with self.assertRaisesMessage(SystemExit, "2 of 2 files were refused."):
                self.mirror(folder, "--group", "Nobody here")
            self.assertIn("b.md: /groups: ", self.said)

    def test_a_busy_site_is_retried_and_a_missing_scope_ends_the_program(self):
        busy = [HTTPError("", 503, "", {"Retry-After": "0"}, io.BytesIO(b""))]
        send = self.send
        self.send = lambda request, timeout: self.failing(busy) or send(request, timeout)
        with tempfile.TemporaryDirectory() as above:
            folder = Path(above, "policies")
            folder.mkdir()
            (folder / "a.md").write_text("Words.")
            self.assertEqual(self.mirror(folder), ["added a.md"])
            self.headers = self.key("documents:read")
            with self.assertRaisesMessage(SystemExit, "documents:write"):
                self.mirror(folder)

    def failing(self, errors):
        if errors:
            raise errors.pop()


class HTTPResponse:
    """A response as urllib returns it: a body with headers, closed after use."""

    def __init__(self, body, headers):
        self.body, self.headers = body, headers

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.body.close()

    def read(self):
        return self.body.read()


class PutAtOnceTests(TransactionTestCase):
    @pytest.mark.slow
    def test_concurrent_uploads_of_one_name_are_one_document(self):
        user = make_user("ada")
        audience = Audience()

        def put(number):
            with reading_everything():
                file = SimpleUploadedFile("a.md", f"Version {number % 3}.".encode())
                return documents.upsert(
                    file, "a.md", owner=user, audience=audience, external_id="one"
                ).document.pk

        with ThreadPoolExecutor(8) as threads:
            keys = set(threads.map(put, range(40)))
        self.assertEqual((len(keys), Document.objects.count(), ExternalId.objects.count()), (1, 1, 1))
