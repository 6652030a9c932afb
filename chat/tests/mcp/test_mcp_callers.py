"""Who may use the MCP server: guests, keys, scopes, and tokens issued for it."""

import json

import pytest
from django.contrib.auth.models import Group
from django.test import Client, override_settings

from chat.protocols import mcp
from chat.tests.mcp.test_mcp import NOWHERE, QUESTION, McpTestCase, new_message
from chatsite.accounts.api_keys import Scope
from chatsite.accounts.models import ApiKey, User
from chatsite.accounts.tests.fake_provider import FakeProvider
from ingestion.access.lists import Audience, set_audience
from ingestion.tests.factories import make_document


class Callers(McpTestCase):
    def test_without_a_key_the_answer_is_401(self):
        body, headers = new_message("tools/list")
        answer = Client().post("/mcp", json.dumps(body), content_type="application/json", headers=headers)
        self.assertEqual(answer.status_code, 401)
        self.assertTrue(answer.headers["WWW-Authenticate"].startswith("Bearer"))
        self.assertIn("message", answer.json()["error"])

    def test_a_refusal_of_a_key_has_the_id_of_the_message(self):
        body, headers = new_message("tools/list")
        for call_id in (body["id"], "first"):
            refused = self.post(body | {"id": call_id}, headers, secret="chs_wrong")
            self.assertEqual(refused.status_code, 401)
            self.assertEqual(refused.json()["id"], call_id)
            self.assertIn("not valid", refused.json()["error"]["message"])
        for unreadable in (b"{", b"[]", body | {"id": None}, body | {"id": [1]}, body | {"id": True}):
            refused = self.post(unreadable, headers, secret="chs_wrong")
            self.assertEqual((refused.status_code, "id" in refused.json()), (401, False), unreadable)

    def test_a_get_without_a_valid_key_is_refused_for_the_key(self):
        for headers in ({}, {"Authorization": "Bearer chs_wrong"}):
            refused = Client().get("/mcp", headers=headers | {"Accept": "text/event-stream"})
            self.assertEqual(refused.status_code, 401)
            self.assertTrue(refused.headers["WWW-Authenticate"].startswith("Bearer"))
            self.assertIn("key", refused.json()["error"]["message"].lower())

    def test_an_attempt_to_register_for_oauth_says_that_a_key_is_needed(self):
        refused = Client().post("/register", "{}", content_type="application/json")
        self.assertEqual((refused.status_code, refused.json()["error"]), (404, "invalid_request"))
        self.assertIn("API key", refused.json()["error_description"])

    def test_a_page_of_another_origin_is_refused_with_any_credentials(self):
        body, headers = new_message("tools/list")
        for origin in ("http://evil.example", "null", "https://testserver.evil.example"):
            answer = self.post(body, headers | {"Origin": origin})
            self.assertEqual(answer.status_code, 403, origin)
        rebound = self.post(body, headers | {"Origin": "http://evil.example", "Host": "evil.example"})
        self.assertEqual(rebound.status_code, 400)
        self.assertEqual(self.post(body, headers | {"Origin": "http://testserver"}).status_code, 200)
        with override_settings(CORS_ORIGINS=["https://inspector.example"]):
            answer = self.post(body, headers | {"Origin": "https://inspector.example"})
        self.assertEqual(answer.status_code, 200)

    def test_revoked_keys_disabled_accounts_and_lost_rights_apply_at_once(self):
        self.assertIn("results", self.call("search", query="leave"))
        self.ann.groups.clear()
        found = self.call("search", query="board leave secret", limit=50)["results"]
        self.assertEqual({hit["document_id"] for hit in found}, {str(self.open.public_id)})
        self.assertIn("no such", self.call("fetch", id=str(self.closed.public_id)))
        ApiKey.objects.filter(pk=self.row.pk).revoke()
        self.assertEqual(self.post(*new_message("tools/list")).status_code, 401)
        secret = ApiKey.objects.issue(self.ann, "other")[1]
        User.objects.filter(pk=self.ann.pk).update(is_active=False)
        self.assertEqual(self.post(*new_message("tools/list"), secret=secret).status_code, 401)

    @override_settings(LOGIN_REQUIRED=False)
    def test_guests_read_documents_for_guests_and_keep_their_cookie(self):
        set_audience(self.open, Audience(guests=True))
        client = Client(enforce_csrf_checks=True)
        for _ in range(2):
            body, headers = new_message("tools/call", name="list_sources", arguments={})
            answer = client.post("/mcp", json.dumps(body), content_type="application/json", headers=headers)
            self.assertEqual(answer.status_code, 200, answer.content)
            listed = answer.json()["result"]["structuredContent"]["documents"]
            self.assertEqual([entry["name"] for entry in listed], ["leave.md"])
        self.assertEqual(User.objects.filter(guest_until__isnull=False).count(), 1)

    def test_a_portal_session_requires_the_csrf_token(self):
        client = Client(enforce_csrf_checks=True)
        client.force_login(self.ann)
        body, headers = new_message("tools/list")
        answer = client.post("/mcp", json.dumps(body), content_type="application/json", headers=headers)
        self.assertEqual(answer.status_code, 403)


class Scopes(McpTestCase):
    @pytest.mark.slow
    def test_a_key_sees_and_uses_only_the_tools_of_its_scopes(self):
        tools = {
            Scope.SEARCH: {"search": {"query": "leave"}},
            Scope.DOCUMENTS_READ: {"fetch": {"id": str(self.open.public_id)}, "list_sources": {}},
            Scope.CHAT: {"ask": {"question": QUESTION}},
        }
        for scope in Scope.values:
            secret = ApiKey.objects.issue(self.ann, "test", scopes=[scope])[1]
            listed = self.result(new_message("tools/list"), secret=secret)["tools"]
            self.assertEqual({tool["name"] for tool in listed}, set(tools.get(scope, ())))
            for needed, calls in tools.items():
                for tool, arguments in calls.items():
                    body, headers = new_message("tools/call", name=tool, arguments=arguments)
                    headers["Accept"] = "application/json"
                    answer = self.post(body, headers, secret=secret)
                    self.assertEqual(answer.status_code, 200 if scope == needed else 403, (scope, tool))
            status = 200 if scope == Scope.DOCUMENTS_READ else 403
            for message in (new_message("resources/list"), new_message("resources/templates/list")):
                self.assertEqual(self.post(*message, secret=secret).status_code, status, scope)

    def test_without_the_scope_a_key_learns_nothing(self):
        secret = ApiKey.objects.issue(self.ann, "test", scopes=["search"])[1]
        refusals = [
            self.error(new_message(method, **params), 403, secret=secret)
            for method, params in (
                ("tools/call", {"name": "fetch", "arguments": {"id": str(self.open.public_id)}}),
                ("tools/call", {"name": "fetch", "arguments": {"id": NOWHERE}}),
                ("tools/call", {"name": "fetch", "arguments": {}}),
                ("resources/read", {"uri": f"document://{self.open.public_id}"}),
                ("resources/read", {"uri": f"document://{NOWHERE}"}),
            )
        ]
        words = "This API key does not have the scope “documents:read”."
        self.assertEqual(refusals, [{"code": mcp.INVALID_REQUEST, "message": words}] * 5)

    def test_removing_a_scope_applies_from_the_next_message(self):
        self.assertEqual(self.post(*new_message("resources/list")).status_code, 200)
        ApiKey.objects.filter(pk=self.row.pk).update(scopes=["search"])
        self.assertEqual(self.post(*new_message("resources/list")).status_code, 403)


METADATA = "/.well-known/oauth-protected-resource"


RESOURCE = "https://documents.example/mcp"


class Tokens(McpTestCase):
    """Access tokens of the organisation's provider, issued for this server and for no other."""

    def setUp(self):
        super().setUp()
        self.provider = FakeProvider()
        self.enterContext(self.provider)
        self.enterContext(override_settings(**self.provider.settings, MCP_AUDIENCE=RESOURCE))

    def status(self, *, typ="at+jwt", path="/mcp", **claims):
        body, headers = new_message("tools/list")
        token = self.provider.token(headers={"typ": typ}, **claims)
        text = json.dumps(body) if path == "/mcp" else json.dumps({"messages": []})
        headers["Authorization"] = f"Bearer {token}"
        return Client().post(path, text, content_type="application/json", headers=headers).status_code

    def test_a_token_for_this_server_is_accepted_only_here(self):
        for typ in ("at+jwt", "application/at+jwt", "JWT"):
            self.assertEqual(self.status(typ=typ, aud=RESOURCE, azp="assistant"), 200, typ)
        self.assertEqual(self.status(aud=["other", RESOURCE], azp="assistant"), 200)
        self.assertEqual(self.status(path="/chat", aud=RESOURCE, azp="assistant"), 401)
        self.assertEqual(self.status(path="/chat", typ="JWT", aud=RESOURCE), 401)

    def test_a_token_for_another_server_is_refused(self):
        client = self.provider.settings["OIDC_AUDIENCE"]
        for claims in ({"aud": "https://other.example/mcp"}, {"aud": f"{RESOURCE}/"}, {"aud": None}):
            self.assertEqual(self.status(**claims), 401, claims)
        self.assertEqual(self.status(aud=client), 401, "an access token of another resource")
        self.assertEqual(self.status(typ="JWT", aud=client, azp="assistant"), 401)
        self.assertEqual(self.status(typ="JWT", aud=client), 200, "an ID token, as everywhere")
        self.assertEqual(self.status(typ="dpop+jwt", aud=RESOURCE), 401)
        self.assertEqual(self.status(aud=RESOURCE, exp=1), 401)
        with override_settings(MCP_AUDIENCE=""):
            self.assertEqual(self.status(aud=RESOURCE), 401)
            self.assertEqual(self.status(aud=""), 401)

    def test_a_token_reads_what_its_person_may_read(self):
        self.provider.mapped_group("Finance")
        make_document("budget.md", groups=[Group.objects.get(name="Finance")])
        names = {}
        for groups in (["Finance"], []):
            token = self.provider.token(headers={"typ": "at+jwt"}, aud=RESOURCE, groups=groups)
            result = self.result(new_message("resources/list"), secret=token)
            names[len(groups)] = {entry["name"] for entry in result["resources"]}
        self.assertEqual(names, {1: {"budget.md", "leave.md"}, 0: {"leave.md"}})

    def test_a_refusal_names_the_metadata_of_the_authorization_server(self):
        body, headers = new_message("tools/list")
        for secret, error in ((None, ""), ("chs_wrong", 'error="invalid_token", ')):
            key = {"Authorization": f"Bearer {secret}"} if secret else {}
            answer = Client().post(
                "/mcp", json.dumps(body), content_type="application/json", headers=headers | key
            )
            challenge = answer.headers["WWW-Authenticate"]
            where = f"http://testserver{METADATA}/mcp"
            self.assertEqual(challenge, f'Bearer {error}resource_metadata="{where}"')
        for path in (f"{METADATA}/mcp", METADATA):
            document = Client().get(path).json()
            self.assertEqual(document["resource"], "http://testserver/mcp")
            self.assertEqual(document["authorization_servers"], [self.provider.issuer])
            self.assertEqual(document["bearer_methods_supported"], ["header"])

    def test_without_tokens_the_metadata_page_does_not_exist(self):
        for settings in ({"MCP_AUDIENCE": ""}, {"OIDC_ISSUER": ""}):
            with override_settings(**settings):
                self.assertEqual(Client().get(f"{METADATA}/mcp").status_code, 404)
                self.assertEqual(
                    Client().post("/mcp", "{}", content_type="application/json")["WWW-Authenticate"], "Bearer"
                )
