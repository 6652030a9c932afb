"""/api/documents/batch, and the pages, versions, file and ETag of one document."""

import base64
from pathlib import Path
from unittest import mock
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, Permission
from django.core.files.base import ContentFile
from django.db import OperationalError
from django.http import Http404
from django.test import TestCase, override_settings
from procrastinate.contrib.django.models import ProcrastinateJob

from chatsite.accounts.models import ApiKey, User
from ingestion import documents, sender_check
from ingestion.access.lists import Audience, audience_of
from ingestion.api import batch, conditional
from ingestion.api.batch import BatchItemSerializer
from ingestion.api.conditional import etag_of
from ingestion.models import Document
from ingestion.tests.factories import make_document, make_user
from ingestion.tests.media import MediaMixin


class DocumentsTestCase(MediaMixin, TestCase):
    def setUp(self):
        super().setUp()
        self.user, self.eve = make_user("ada"), make_user("eve")
        scopes = ["documents:read", "documents:write"]
        secret = ApiKey.objects.issue(self.user, "test", scopes=scopes)[1]
        self.headers = {"Authorization": f"Bearer {secret}"}

    def get(self, path, **headers):
        return self.client.get(f"/api/documents/{path}", headers=self.headers | headers)


@pytest.mark.slow
class BatchTests(DocumentsTestCase):
    def test_nothing_more_is_changed_once_the_account_is_disabled_or_a_group_is_left(self):
        group = Group.objects.create(name="HR")
        self.user.groups.add(group)
        kept = make_document("kept.md", owner=self.user)
        items = [
            {"action": "put", "id": name, "name": f"{name}.md", "text": "Words.", "groups": ["HR"]}
            for name in ("one", "two", "three")
        ]
        store = documents._store

        def stored_slowly(change):
            def stored(upload):
                result = store(upload)
                change()
                return result

            return mock.patch.object(documents, "_store", stored)

        with mock.patch.object(sender_check, "CHECK_SECONDS", -1):
            with stored_slowly(self.user.groups.clear):
                reply = self.results(items[0])
            self.assertEqual(reply["results"][0]["status"], 400)
            self.assertIn("HR", reply["results"][0]["problem"]["detail"])
            self.user.groups.add(group)
            disable = User.objects.filter(pk=self.user.pk).update
            with stored_slowly(lambda: disable(is_active=False)):
                reply = self.results(*items, {"action": "delete", "id": str(kept.public_id)})
        self.assertEqual([each["status"] for each in reply["results"]], [401] * 4)
        self.assertEqual([each.pk for each in Document.objects.all()], [kept.pk])
        self.assertEqual([path for path in Path(self.media).rglob("*") if path.is_file()], [])

    def test_staff_change_no_document_of_others_once_they_are_demoted(self):
        Group.objects.create(name="Board")
        ids = [str(make_document(name, owner=self.eve, everyone=True).public_id) for name in "abc"]
        permissions = Permission.objects.filter(codename__in=["change_document", "delete_document"])
        scopes = ["documents:write", "admin:documents"]
        secret = ApiKey.objects.issue(self.user, "staff", scopes=scopes)[1]
        self.headers = {"Authorization": f"Bearer {secret}"}
        items = [
            {"action": "patch", "id": ids[0], "title": "Before"},
            {"action": "patch", "id": ids[1], "title": "After"},
            {"action": "delete", "id": ids[2]},
            {"action": "put", "id": "new", "text": "Words.", "groups": ["Board"]},
        ]
        accounts, done = User.objects.filter(pk=self.user.pk), batch.BatchView._done
        for withdraw, shared in (
            (self.user.user_permissions.clear, 201),  # staff without these permissions may choose any group
            (lambda: accounts.update(is_staff=False), 400),
        ):
            accounts.update(is_staff=True)
            self.user.user_permissions.set(permissions)

            def slowly_done(view, item, withdraw=withdraw):
                result = done(view, item)
                withdraw()
                return result

            with (
                mock.patch.object(sender_check, "CHECK_SECONDS", -1),
                mock.patch.object(batch.BatchView, "_done", slowly_done),
            ):
                reply = self.results(*items)
            statuses = [each["status"] for each in reply["results"]]
            self.assertEqual(statuses, [200, 403, 403, shared])
        self.assertEqual(Document.objects.filter(owner=self.eve).count(), 3)

    def send(self, *items, **body):
        values = body or {"items": items}
        return self.client.post("/api/documents/batch", values, "application/json", headers=self.headers)

    def results(self, *items):
        answer = self.send(*items)
        self.assertEqual(answer.status_code, 200, answer.content)
        return answer.json()

    def test_an_unknown_member_is_refused_before_anything_is_done(self):
        item = {"action": "put", "id": "one", "name": "a.md", "text": "Words."}
        answer = self.send(items=[item], dry_run=True)
        self.assertEqual(answer.status_code, 400, answer.content)
        self.assertIn("dry_run", answer.content.decode())
        self.assertFalse(Document.objects.filter(name="a.md").exists())

    def test_items_are_processed_in_order_and_each_has_a_result(self):
        text = {"action": "put", "id": "a", "name": "a.md", "text": "# Leave\n\nFive days.", "labels": ["hr"]}
        packed = base64.b64encode(b"Six days.").decode()
        reply = self.results(
            text | {"everyone": True},
            text | {"everyone": True},
            {"action": "put", "id": "b", "name": "b.txt", "base64": packed, "valid_until": "2126-01-31"},
            {"action": "patch", "id": "a", "users": ["eve"], "source_url": "https://wiki.example/a"},
            {"action": "delete", "id": "b"},
        )
        self.assertEqual((reply["succeeded"], reply["failed"]), (5, 0))
        self.assertEqual(
            [(each["id"], each["status"], each["outcome"]) for each in reply["results"]],
            [
                ("a", 201, "added"),
                ("a", 200, "unchanged"),
                ("b", 201, "added"),
                ("a", 200, "changed"),
                ("b", 204, "deleted"),
            ],
        )
        self.assertEqual(reply["results"][2]["document"]["valid_until"], "2126-01-31")
        document = Document.objects.get()
        self.assertEqual(audience_of(document), Audience(user_ids=frozenset({self.eve.pk})))
        self.assertEqual((document.labels, document.source_url), (["hr"], "https://wiki.example/a"))

    def test_a_refused_item_has_a_reason_and_does_not_stop_the_others(self):
        closed = make_document("closed.md", users=[self.eve])
        others = make_document("open.md", everyone=True)
        good = {"action": "put", "id": "good", "text": "Five days."}
        for item, status, pointer in (
            ("a", 400, ""),
            (7, 400, ""),
            ({}, 400, "/action"),
            ({"action": "burn", "id": "a"}, 400, "/action"),
            (good | {"base64": "YQ=="}, 400, "/text"),
            ({"action": "put", "id": "a"}, 400, "/text"),
            ({"action": "put", "id": "a", "base64": "*"}, 400, "/base64"),
            ({"action": "put", "id": "a", "text": ""}, 400, "/text"),
            (good | {"id": "batch"}, 400, "/id"),
            (good | {"id": str(uuid4())}, 400, "/id"),
            (good | {"readers": []}, 400, "/readers"),
            (good | {"groups": ["nobody"]}, 400, "/groups"),
            (good | {"source_url": "javascript:alert(1)"}, 400, "/source_url"),
            ({"action": "delete", "id": "a", "title": "b"}, 400, "/title"),
            ({"action": "patch", "id": "a", "text": "b"}, 400, "/text"),
            ({"action": "delete", "id": str(closed.public_id)}, 404, ""),
            ({"action": "patch", "id": str(closed.public_id), "everyone": True}, 404, ""),
            ({"action": "delete", "id": str(others.public_id)}, 403, ""),
        ):
            with self.subTest(item):
                reply = self.results(item, good)
                refused, done = reply["results"]
                self.assertEqual((refused["status"], refused["outcome"]), (status, "refused"))
                self.assertEqual(refused["problem"].get("errors", [{"pointer": ""}])[0]["pointer"], pointer)
                self.assertEqual(done["status"] // 100, 2)
                self.assertEqual((reply["succeeded"], reply["failed"]), (1, 1))
        self.assertEqual(audience_of(closed).user_ids, {self.eve.pk})
        self.assertEqual(Document.objects.count(), 3)

    def test_a_server_error_is_reported_for_its_item(self):
        item = {"action": "put", "id": "a", "text": "Five days."}
        for fault, status in ((OperationalError("gone"), 503), (ZeroDivisionError("secret"), 500)):
            faults = mock.patch.object(documents, "upsert", side_effect=[fault, mock.DEFAULT])
            with faults, self.assertLogs(batch.logger, "ERROR"):
                reply = self.results(item, {"action": "delete", "id": "a"})
            self.assertEqual([each["status"] for each in reply["results"]], [status, 404])
            self.assertNotIn("secret", str(reply))

    def test_an_item_that_is_not_an_object_gets_its_own_error(self):
        reply = self.results(None, 1, [], "x", {"action": "put", "id": "a", "text": "Five days."})
        self.assertEqual([each["status"] for each in reply["results"]], [400, 400, 400, 400, 201])

    def test_an_invalid_batch_is_refused_as_a_whole(self):
        item = {"action": "put", "id": "a", "text": "Five days."}
        for values in (
            {"items": []},
            {"items": [item] * 101},
            {"items": item},
            {"x": 1},
        ):
            self.assertEqual(self.send(**values).status_code, 400)
        with mock.patch.object(BatchItemSerializer, "to_internal_value", side_effect=AssertionError):
            self.assertEqual(self.send(items=[item] * 101).status_code, 400)  # and no item is parsed
        with mock.patch.object(batch, "MAX_BYTES", 100):
            self.assertEqual(self.send(item | {"text": "x" * 100}).status_code, 413)
        self.assertFalse(Document.objects.exists())

    @pytest.mark.slow
    def test_equal_items_cause_one_reading(self):
        item = {"action": "put", "id": "a", "name": "a.md", "text": "Five days.", "title": "Leave"}
        reply = self.results(*[item] * 100)
        self.assertEqual(reply["succeeded"], 100)
        lock = documents.lock_name(Document.objects.get().pk)
        self.assertEqual(ProcrastinateJob.objects.filter(lock=lock).count(), 1)


class ContentsTests(DocumentsTestCase):
    def test_a_page_has_its_text_and_its_image_if_there_is_one(self):
        document = make_document(
            "plan.pdf",
            [("page=1", 1, "Aims", "One."), ("page=1", 1, "Aims", "Two."), ("page=3", 3, "", "Three.")],
            owner=self.user,
            page_count=3,
        )
        Document.objects.filter(pk=document.pk).update(media_type="application/pdf")
        reply = self.get(f"{document.public_id}/pages/1").json()
        self.assertEqual((reply["page"], reply["text"], len(reply["passages"])), (1, "One.\nTwo.", 2))
        self.assertTrue(reply["image"].endswith(f"/content/{document.public_id}/pages/1.png"))
        self.assertEqual(self.get(f"{document.public_id}/pages/2").json()["text"], "")
        for number in ("0", "4", "999999", 1_000_000, -1, "x", "١"):
            nothing = self.get(f"{document.public_id}/pages/{number}")
            self.assertEqual(nothing.status_code, 404, number)
            self.assertEqual(nothing.headers["Content-Type"], "application/problem+json", number)
        Document.objects.filter(pk=document.pk).update(media_type="text/plain", page_count=None)
        self.assertIsNone(self.get(f"{document.public_id}/pages/1").json()["image"])

    def test_versions_and_file_are_those_that_were_read_last(self):
        for text in (b"Five days.", b"Six days."):
            put = documents.upsert(ContentFile(text), "a.md", owner=self.user, audience=Audience())
            documents.read_document(put.document.pk, put.replacement)
        reply = self.get(f"{put.document.public_id}/versions").json()
        self.assertEqual(
            [(each["version"], each["size"], each["current"]) for each in reply],
            [(2, 9, True), (1, 10, False)],
        )
        file = self.get(f"{put.document.public_id}/file")
        self.assertEqual(b"".join(file.streaming_content), b"Six days.")
        self.assertIn("sandbox", file.headers["Content-Security-Policy"])
        part = self.get(f"{put.document.public_id}/file", Range="bytes=0-2")
        self.assertEqual((part.status_code, b"".join(part.streaming_content)), (206, b"Six"))
        Document.objects.update(versions=[])
        reply = self.get(f"{put.document.public_id}/versions").json()
        self.assertEqual([(each["version"], each["read_at"]) for each in reply], [(2, None)])

    def test_only_the_owner_sees_former_versions(self):
        for text in (b"Five secret days.", b"Six days."):
            put = documents.upsert(
                ContentFile(text), "a.md", owner=self.eve, audience=Audience(everyone=True)
            )
            documents.read_document(put.document.pk, put.replacement)
        reply = self.get(f"{put.document.public_id}/versions").json()
        self.assertEqual([each["version"] for each in reply], [2])

    def test_overlong_lists_are_refused_by_their_length(self):
        document = make_document("a.md", owner=self.user)
        for member in ("labels", "users", "groups"):
            answer = self.client.patch(
                f"/api/documents/{document.public_id}",
                {member: [1] * 100_000},
                "application/json",
                headers=self.headers,
            )
            self.assertEqual(answer.status_code, 400)
            self.assertLess(len(answer.content), 1_000)

    def test_unreadable_documents_look_like_missing_ones(self):
        closed = make_document("closed.md", [("", 1, "", "Secret.")], users=[self.eve])
        for path in ("pages/1", "versions", "file"):
            answers = [self.get(f"{each}/{path}") for each in (closed.public_id, uuid4())]
            self.assertEqual({each.status_code for each in answers}, {404})
            self.assertEqual(answers[0].content, answers[1].content)


class IfMatchTests(DocumentsTestCase):
    def test_a_change_applies_only_to_the_version_that_was_read(self):
        document = make_document("a.md", owner=self.user)
        path = f"/api/documents/{document.public_id}"
        seen = self.get(document.public_id).headers["ETag"]

        def patch(labels, tag):
            headers = self.headers | {"If-Match": tag}
            return self.client.patch(path, {"labels": labels}, "application/json", headers=headers)

        changed = patch(["one"], seen)
        self.assertEqual(changed.status_code, 200)
        self.assertNotEqual(changed.headers["ETag"], seen)
        for tag, status in ((seen, 412), ("nothing", 400), ("", 400)):
            self.assertEqual(patch(["two"], tag).status_code, status)
            deleted = self.client.delete(path, headers=self.headers | {"If-Match": tag})
            self.assertEqual(deleted.status_code, status)
        self.assertContains(patch(["two"], "nothing"), "quotation marks", status_code=400)
        self.assertEqual(patch(["three"], f'"other", {changed.headers["ETag"]}').status_code, 200)
        self.assertEqual(patch(["four"], "*").status_code, 200)
        compressed = f"W/{self.get(document.public_id).headers['ETag']}"
        self.assertEqual(patch(["four"], compressed).status_code, 200)
        self.assertEqual(Document.objects.get().labels, ["four"])

    def test_the_etag_of_a_put_is_valid_after_the_file_is_read(self):
        def put(text, **headers):
            return self.client.put(
                "/api/documents/one?name=a.md&users=eve",
                text,
                content_type="text/plain",
                headers=self.headers | headers,
            )

        added = put("One.").headers["ETag"]
        replaced = put("Two.", **{"If-Match": added}).headers["ETag"]
        self.assertNotEqual(added, replaced)
        document = Document.objects.get()
        jobs = ProcrastinateJob.objects.filter(lock=documents.lock_name(document.pk)).order_by("pk")
        for job in jobs:
            documents.read_document(document.pk, job.args["replacement"])
        self.assertEqual(self.get("one").headers["ETag"], replaced)
        self.assertEqual(put("Three.", **{"If-Match": added}).status_code, 412)
        self.assertEqual(put("Three.", **{"If-Match": replaced}).status_code, 200)

    def test_the_etag_does_not_reveal_the_readers(self):
        document = make_document("a.md", owner=self.user)
        tag = etag_of(document)
        self.assertEqual(etag_of(Document.objects.get(pk=document.pk)), tag)
        with override_settings(SECRET_KEY="another"):
            self.assertNotEqual(etag_of(document), tag)

    def test_a_file_replaces_only_the_version_that_was_read(self):
        def put(text, **headers):
            return self.client.put(
                "/api/documents/one?name=a.md",
                text,
                content_type="text/plain",
                headers=self.headers | headers,
            )

        seen = put("One.").headers["ETag"]
        self.assertEqual(put("Two.", **{"If-Match": seen}).status_code, 200)
        self.assertEqual(put("Three.", **{"If-Match": seen}).status_code, 412)
        self.assertEqual(put("Four.", **{"If-None-Match": "*"}).status_code, 412)
        lock = documents.lock_name(Document.objects.get().pk)
        self.assertEqual(ProcrastinateJob.objects.filter(lock=lock).count(), 2)

    def test_if_none_match_adds_a_file_only_if_there_is_none(self):
        def put(name, text="One.", **headers):
            return self.client.put(
                f"/api/documents/{name}?name={name}.md",
                text,
                content_type="text/plain",
                headers=self.headers | headers,
            )

        self.assertEqual(put("one", **{"If-Match": "*"}).status_code, 412)
        added = put("one", **{"If-None-Match": "*"})
        self.assertEqual(added.status_code, 201)
        for wanted in ("*", added.headers["ETag"]):
            self.assertEqual(put("one", **{"If-None-Match": wanted}).status_code, 412)
        self.assertEqual(put("one", **{"If-None-Match": '"other"'}).status_code, 200)
        # As if both had checked at the same time.
        with mock.patch.object(conditional, "checked", side_effect=Http404):
            self.assertEqual(put("one", **{"If-None-Match": "*"}).status_code, 412)
            self.assertEqual(put("one", text="Two.", **{"If-None-Match": "*"}).status_code, 412)
        lock = documents.lock_name(Document.objects.get().pk)
        self.assertEqual(ProcrastinateJob.objects.filter(lock=lock).count(), 1)
        # The late file is not kept, and does not count for a quota.
        self.assertEqual(
            [each for each in Path(self.media).rglob("*") if each.is_file()],
            [Path(Document.objects.get().file.path)],
        )

    def test_a_reader_is_named_by_exactly_one_user_name(self):
        make_user("bob")
        for name in ("eve,bob", "eve bob", "eve;bob", "Ada Smith (eve)", ","):
            answer = self.client.put(
                f"/api/documents/one?name=a.md&{urlencode({'users': name})}",
                "One.",
                content_type="text/plain",
                headers=self.headers,
            )
            self.assertContains(answer, "There is no account named", status_code=400)
        self.assertFalse(Document.objects.exists())

    def test_a_batch_has_no_conditions(self):
        items = [{"action": "put", "id": "one", "text": "One."}]
        for name in ("If-Match", "If-None-Match", "if-match"):
            headers = self.headers | {name: "*"}
            answer = self.client.post(
                "/api/documents/batch", {"items": items}, "application/json", headers=headers
            )
            self.assertContains(answer, "If-Match and If-None-Match are not supported", status_code=400)
        self.assertFalse(Document.objects.exists())
