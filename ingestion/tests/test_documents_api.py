"""/api/documents: lists, states and passages for programs, under the rights of their caller."""

from uuid import uuid4

from django.test import TestCase

from chatsite.accounts.models import ApiKey
from ingestion.models import Document
from ingestion.tests.factories import make_document, make_user


class DocumentsApiTests(TestCase):
    def setUp(self):
        self.user = make_user("ada")
        self.others = make_document("guide.md", ["One.", "Two.", "Three."], everyone=True, folder="rules")
        self.own = make_document("own.md", owner=self.user, category="hr")
        self.secret_document = make_document("secret.md", users=[make_user("eve")])
        self.headers = self.key("documents:read", "documents:write")

    def key(self, *scopes):
        return {"Authorization": f"Bearer {ApiKey.objects.issue(self.user, 'test', scopes=scopes)[1]}"}

    def get(self, path="", headers=None):
        return self.client.get(f"/api/documents{path}", headers=headers or self.headers)

    def names(self, query=""):
        answer = self.get(query)
        self.assertEqual(answer.status_code, 200, answer.content)
        return [each["name"] for each in answer.json()]

    def test_the_list_has_what_its_person_may_read_newest_first(self):
        self.assertEqual(self.names(), ["own.md", "guide.md"])
        make_document("failed.md", everyone=True)
        Document.objects.filter(name="failed.md").update(version=0, status="failed")
        self.assertEqual(self.names(), ["own.md", "guide.md"])

    def test_it_is_narrowed_by_filters(self):
        for query in ("?own=true", "?category=hr", "?q=OWN", "?folder="):
            self.assertIn("own.md", self.names(query), query)
        self.assertEqual(self.names("?folder=rules"), ["guide.md"])
        self.assertEqual(self.names("?own=true&folder=rules"), [])
        self.assertEqual(self.names("?status=failed"), [])

    def test_pages_follow_each_other_by_the_link(self):
        first = self.get("?limit=1&q=md")
        self.assertEqual([each["name"] for each in first.json()], ["own.md"])
        address = first.headers["Link"].partition(">")[0].removeprefix("</api/documents")
        second = self.get(address)
        self.assertEqual([each["name"] for each in second.json()], ["guide.md"])
        self.assertNotIn("Link", second.headers)

    def test_one_tells_its_state_and_its_text(self):
        Document.objects.filter(pk=self.own.pk).update(status="reading", progress_done=3, progress_total=9)
        told = self.get(f"/{self.own.public_id}").json()
        self.assertEqual((told["status"], told["progress"]), ("reading", {"done": 3, "total": 9}))
        self.assertEqual((told["own"], told["category"], told["version"]), (True, "hr", 1))
        self.assertTrue(told["url"].endswith(f"/content/{self.own.public_id}/own.md"))
        passages = self.get(f"/{self.others.public_id}/passages?start=1&limit=1").json()
        self.assertEqual([each["content"] for each in passages], ["Two."])

    def test_a_closed_document_is_like_one_that_does_not_exist(self):
        for ending in ("", "/passages"):
            closed = self.get(f"/{self.secret_document.public_id}{ending}")
            unknown = self.get(f"/{uuid4()}{ending}")
            self.assertEqual((closed.status_code, closed.content), (404, unknown.content))
        gone = self.client.delete(f"/api/documents/{self.secret_document.public_id}", headers=self.headers)
        self.assertEqual(gone.status_code, 404)
        self.assertTrue(Document.objects.filter(pk=self.secret_document.pk).exists())

    def test_ones_own_can_be_deleted_and_no_other(self):
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
