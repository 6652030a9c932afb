"""Keys of staff for other people's documents: with the scope admin:documents, all rights of their owner."""

import importlib

from django.contrib.auth.models import Group, Permission
from django.db import connection
from django.test import TestCase

from chatsite.accounts.models import ApiKey, AuditEntry
from ingestion.access.lists import audience_of
from ingestion.models import Document
from ingestion.tests.factories import make_document, make_user
from ingestion.tests.media import MediaMixin

SCOPE = "This API key does not have the scope “admin:documents”."
NOT_YOURS = "Only the person who added the document or an administrator can change or delete it."
WRITE = ("documents:read", "documents:write")


class StaffKeysTests(MediaMixin, TestCase):
    def setUp(self):
        self.owner = make_user("owner")
        self.staff = make_user("staff", is_staff=True)
        self.staff.user_permissions.set(
            Permission.objects.filter(codename__in=["change_document", "delete_document"])
        )
        self.crew = Group.objects.create(name="Crew")
        self.document = make_document("guide.md", ["One."], owner=self.owner, everyone=True)
        self.path = f"/api/documents/{self.document.public_id}"
        self.weak = self.key(self.staff, *WRITE)
        self.strong = self.key(self.staff, *WRITE, "admin:documents")

    def key(self, person, *scopes):
        return {"Authorization": f"Bearer {ApiKey.objects.issue(person, 'test', scopes=scopes)[1]}"}

    def send(self, method, headers, body=None, path=""):
        send = getattr(self.client, method)
        return send(path or self.path, body or {}, "application/json", headers=headers)

    def test_only_the_scope_allows_changing_and_deleting_documents_of_others(self):
        for method in ("patch", "delete"):
            refused = self.send(method, self.weak, {"groups": ["Crew"]})
            self.assertEqual((refused.status_code, refused.json()["detail"]), (403, SCOPE))
        item = {"action": "delete", "id": str(self.document.public_id)}
        told = self.send("post", self.weak, {"items": [item]}, "/api/documents/batch").json()
        self.assertEqual(told["results"][0]["status"], 403)
        self.document.refresh_from_db()
        self.assertTrue(audience_of(self.document).everyone)
        changed = self.send("patch", self.strong, {"groups": ["Crew"], "users": ["staff"]})
        self.assertEqual((changed.status_code, changed.json()["readers"]["groups"]), (200, ["Crew"]))
        self.assertEqual(self.send("delete", self.strong).status_code, 204)
        self.assertFalse(Document.objects.exists())

    def test_only_the_scope_shows_the_readers_of_documents_of_others(self):
        for headers, told in ((self.weak, False), (self.strong, True)):
            readers = self.client.get(self.path, headers=headers).json()["readers"]
            self.assertEqual(readers is not None, told)

    def test_only_the_scope_allows_naming_groups_of_others(self):
        mine = make_document("mine.md", ["Two."], owner=self.staff)
        path = f"/api/documents/{mine.public_id}"
        for name in ("Crew", "nobody"):
            refused = self.send("patch", self.weak, {"groups": [name]}, path)
            self.assertEqual((refused.status_code, refused.json()["detail"]), (403, SCOPE))
        refused = self.send("patch", self.strong, {"groups": ["nobody"]}, path)
        self.assertEqual(
            (refused.status_code, refused.json()["detail"]), (400, "There is no group named nobody.")
        )
        self.assertEqual(self.send("patch", self.strong, {"groups": ["Crew"]}, path).status_code, 200)

    def test_every_action_on_a_document_of_others_is_in_the_audit_log(self):
        named = f"guide.md ({self.document.public_id})"
        wish = {"valid_until": "2020-01-01", "title": "Renamed", "category": "old"}
        self.assertEqual(self.send("patch", self.strong, wish).status_code, 200)
        self.send("patch", self.strong, wish)  # the second time, nothing changes
        self.client.force_login(self.staff)
        page = f"/documents/{self.document.public_id}"
        self.client.post(f"{page}/details/", {"title": "Renamed", "labels": "x, y"})
        place = {"act": "place", "document": [self.document.public_id], "folder": "attic", "category": ""}
        self.client.post("/documents/several/", place)
        Document.objects.update(status="ready")
        self.client.post(f"{page}/again/")
        self.assertEqual(self.send("delete", self.strong).status_code, 204)
        other, last = (make_document(name, owner=self.owner, everyone=True) for name in ("b.md", "c.md"))
        self.client.post(f"/documents/{other.public_id}/delete/")
        several = {"act": "delete", "document": [last.public_id], "confirmed": "yes"}
        self.client.post("/documents/several/", several)
        self.assertFalse(Document.objects.exists())
        entries = AuditEntry.objects.filter(action="document_changed", actor="staff", person="owner")
        self.assertEqual(
            list(entries.order_by("pk").values_list("subject", flat=True)),
            [
                f"Changed (category: old; title: Renamed; last day: 2020-01-01) {named}",
                f"Changed (labels: x, y; last day: removed) {named}",
                f"Changed (folder: attic) {named}",
                f"Read again {named}",
                f"Deleted {named}",
                f"Deleted b.md ({other.public_id})",
                f"Deleted c.md ({last.public_id})",
            ],
        )

    def test_ones_own_documents_need_no_scope_of_staff(self):
        mine = make_document("mine.md", ["Two."], owner=self.staff)
        path = f"/api/documents/{mine.public_id}"
        self.assertEqual(self.send("patch", self.weak, {"users": ["owner"]}, path).status_code, 200)
        self.assertEqual(self.send("delete", self.weak, path=path).status_code, 204)
        self.assertFalse(AuditEntry.objects.exists())

    def test_the_scope_adds_no_rights_to_those_of_the_person(self):
        for person in (
            make_user("member"),
            make_user("clerk", is_staff=True),
        ):  # no right to change documents
            refused = self.send("delete", self.key(person, *WRITE, "admin:documents"))
            self.assertEqual((refused.status_code, refused.json()["detail"]), (403, NOT_YOURS))
        closed = make_document("closed.md", ["Three."], owner=self.owner)
        path = f"/api/documents/{closed.public_id}"
        self.assertEqual(self.send("delete", self.strong, path=path).status_code, 404)
        # The scope does not allow reading, searching or adding.
        only = self.key(self.staff, "admin:documents")
        self.assertEqual(self.client.get(self.path, headers=only).status_code, 403)
        self.assertEqual(self.send("patch", only, {"category": "x"}).status_code, 403)

    def test_losing_staff_status_ends_the_scope_at_once(self):
        type(self.staff).objects.update(is_staff=False)
        refused = self.send("delete", self.strong)
        self.assertEqual((refused.status_code, refused.json()["detail"]), (403, NOT_YOURS))

    def test_only_staff_see_and_get_the_scope(self):
        for person, offered in ((self.staff, True), (self.owner, False)):
            headers = self.key(person, "chat", "admin:documents")
            told = self.client.get("/api/whoami", headers=headers).json()["scopes"]
            self.assertEqual("admin:documents" in told, offered)
            self.client.force_login(person)
            page = self.client.get("/settings/keys/")
            self.assertEqual("admin:documents" in page.text, offered)
            chosen = {"name": "x", "scopes": ["chat", "admin:documents"], "scopes_offered": "1"}
            made = self.client.post("/settings/keys/", chosen)
            self.assertEqual(made.status_code, 200 if offered else 422)
            self.client.logout()

    def test_staff_keys_older_than_the_scope_keep_their_abilities(self):
        ApiKey.objects.all().delete()
        kept = {
            "staff": ["chat"],
            "writing": [*WRITE, "admin:documents"],
            "other": list(WRITE),
        }
        ApiKey.objects.issue(self.staff, "staff", scopes=["chat"])
        ApiKey.objects.issue(self.staff, "writing", scopes=WRITE)
        ApiKey.objects.issue(self.owner, "other", scopes=WRITE)
        migration = importlib.import_module("chatsite.accounts.migrations.0029_admin_scope")
        with connection.cursor() as cursor:
            cursor.execute(migration.ADD)
            self.assertEqual(dict(ApiKey.objects.values_list("name", "scopes")), kept)
            cursor.execute(migration.TAKE_AWAY)
        self.assertEqual(dict(ApiKey.objects.values_list("name", "scopes"))["writing"], list(WRITE))
