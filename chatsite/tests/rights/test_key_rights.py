"""A key gives access within its scopes and its person's rights, and none after it was revoked."""

import json
from itertools import product

import pytest
from django.contrib.auth.models import Group
from django.test import TransactionTestCase

from chat.protocols import mcp
from chatsite.accounts.api_keys import Scope
from chatsite.accounts.models import ApiKey
from ingestion.access.lists import Audience, access_list_for
from ingestion.documents import delete_document
from ingestion.models import Document
from ingestion.tests.factories import make_document, make_user

CANARY = "quetzalcoatlus"
QUESTION = "Which animal guards the harbour?"
TEXT = f"The animal that guards the harbour is the {CANARY}."


class KeyRightsTestCase(TransactionTestCase):
    def setUp(self):
        self.owner = make_user("owner")
        self.member = make_user("member", groups=["Crew"])
        self.stranger = make_user("stranger")
        self.crew = Group.objects.get(name="Crew")
        self.document = make_document(
            f"{CANARY}.md",
            [("", 1, CANARY, TEXT)],
            owner=self.owner,
            groups=[self.crew],
            labels=[CANARY],
            source_url=f"https://wiki.example/{CANARY}",
        )

    def key(self, person, *scopes, **options):
        return ApiKey.objects.issue(person, "test", scopes=scopes, **options)

    def headers(self, secret, **more):
        revision = {"Accept": "application/json", "MCP-Protocol-Version": mcp.HANDSHAKE[0]}
        return {"Authorization": f"Bearer {secret}", **revision, **more}

    def post(self, path, body, headers):
        return self.client.post(path, body, "application/json", headers=headers)

    def search(self, headers):
        return self.post("/api/search", {"query": QUESTION}, headers)

    def tool(self, headers):
        params = {"name": "search", "arguments": {"query": QUESTION}}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return self.post("/mcp", call, headers)


@pytest.mark.slow
class ScopesAndRightsTests(KeyRightsTestCase):
    def routes(self):
        """(name, required scope, request) of everything that reads or searches documents."""
        one = f"/api/documents/{self.document.public_id}"
        item = {"action": "patch", "id": str(self.document.public_id), "category": ""}
        for path in (
            "/api/documents",
            one,
            *(f"{one}/{part}" for part in ("passages", "pages/1", "versions")),
        ):
            yield (
                path,
                Scope.DOCUMENTS_READ,
                lambda headers, path=path: self.client.get(path, headers=headers),
            )
        yield "search", Scope.SEARCH, self.search
        yield "mcp", Scope.SEARCH, self.tool
        yield (
            "batch",
            Scope.DOCUMENTS_WRITE,
            lambda headers: self.post("/api/documents/batch", {"items": [item]}, headers),
        )
        yield (
            "patch",
            Scope.DOCUMENTS_WRITE,
            lambda headers: self.client.patch(one, {"category": ""}, "application/json", headers=headers),
        )

    def test_no_answer_shows_what_rights_and_scopes_do_not_allow(self):
        readers = {self.owner, self.member}
        people = [(person, None) for person in (self.owner, self.member, self.stranger)]
        service = make_user("service", service_for="Program")
        people += [(service, None), (service, self.owner), (service, self.stranger)]
        for (person, on_behalf_of), scope in product(people, Scope.values):
            secret = self.key(person, scope, acts_for_others=on_behalf_of is not None)[1]
            headers = self.headers(secret)
            if on_behalf_of:
                headers["X-On-Behalf-Of"] = on_behalf_of.username
            reader = on_behalf_of or person
            for name, needed, request in self.routes():
                with self.subTest(name, person=person, on_behalf_of=on_behalf_of, scope=scope):
                    shown = CANARY in request(headers).content.decode()
                    changes = needed == Scope.DOCUMENTS_WRITE
                    allowed = reader == self.owner if changes else reader in readers
                    versions = name.endswith("/versions")  # numbers only
                    self.assertEqual(shown, allowed and scope == needed and not versions)


class RevokingTests(KeyRightsTestCase):
    def shown(self, headers):
        return [CANARY in answer.content.decode() for answer in (self.search(headers), self.tool(headers))]

    def test_revocation_applies_from_the_next_request(self):
        key, secret = self.key(self.member, "search")
        headers = self.headers(secret)
        self.assertEqual(self.shown(headers), [True, True])

        def expect_gone(what):
            self.assertEqual(self.shown(headers), [False, False], what)

        ApiKey.objects.filter(pk=key.pk).update(addresses=["192.0.2.1/32"])
        expect_gone("an address")
        ApiKey.objects.filter(pk=key.pk).update(addresses=[], scopes=["chat"])
        expect_gone("a scope")
        ApiKey.objects.filter(pk=key.pk).update(scopes=["search"])
        self.member.groups.clear()
        expect_gone("a group")
        self.member.groups.add(self.crew)
        self.assertEqual(self.shown(headers), [True, True])
        Document.objects.update(access_list=access_list_for(Audience(), self.owner.pk))
        expect_gone("a right")
        Document.objects.update(
            access_list=access_list_for(Audience(group_ids=frozenset({self.crew.pk})), self.owner.pk)
        )
        self.member.is_active = False
        self.member.save()
        expect_gone("an account")
        self.member.is_active = True
        self.member.save()
        self.assertEqual(self.shown(headers), [True, True])
        delete_document(Document.objects.get())
        expect_gone("a document")

    def test_a_revoked_key_finds_nothing(self):
        key, secret = self.key(self.member, "search")
        ApiKey.objects.filter(pk=key.pk).revoke()
        headers = self.headers(secret)
        self.assertEqual(
            [answer.status_code for answer in (self.search(headers), self.tool(headers))], [401, 401]
        )
        self.assertEqual(json.loads(self.search(headers).content)["status"], 401)
