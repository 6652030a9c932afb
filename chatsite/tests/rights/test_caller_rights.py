"""Every cell of “Who may do what” in docs/protocols.md: a guest, a session, an API key, an ID token."""

import json
import time
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission
from django.test import Client, TransactionTestCase, override_settings

from chat.api import embeddings
from chatsite.accounts.models import ApiKey, ExternalIdentity, User
from chatsite.accounts.tests.fake_provider import FakeProvider
from history.models import Conversation
from ingestion.access.lists import Audience, set_audience
from ingestion.tests.factories import make_document, make_user

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "protocols.md"
ASKED = {"messages": [{"role": "user", "content": "How many days of leave may employees carry over?"}]}
OWN_ORIGIN = {"Sec-Fetch-Site": "same-origin"}
ORIGIN = "https://app.example.org"
CALLERS = ("guest", "session", "API key", "ID token")


class Caller:
    """A client with its credentials; `headers` go with every request."""

    def __init__(self, **headers):
        self.client = Client(enforce_csrf_checks=True)
        self.headers = headers

    def __call__(self, method, path, body=None, **headers):
        data = "" if body is None else json.dumps(body)
        return self.client.generic(method, path, data, "application/json", headers=self.headers | headers)

    def ask(self, path="/chat", **members):
        return self("POST", path, ASKED | members, **OWN_ORIGIN)


@pytest.mark.slow
@override_settings(LOGIN_REQUIRED=False, QUOTING_WORDS_PER_SECOND=10_000, JOURNAL_FLUSH_SECONDS=0.02)
class WhoMayDoWhat(TransactionTestCase):
    def setUp(self):
        embeddings._asked_at.clear()
        self.provider = FakeProvider()
        self.enterContext(self.provider)
        self.enterContext(override_settings(**self.provider.settings))
        self.ann = make_user("ann")
        self.secret = ApiKey.objects.issue(self.ann, "test")[1]
        self.token = self.provider.token()
        set_audience(self.document("open.md"), Audience(guests=True))
        self.document("internal.md", everyone=True)
        self.document("granted.md", users=(self.ann,))

    def document(self, name, **audience):
        return make_document(
            name, (f"Employees may carry over five days of leave, says {name}.",), **audience
        )

    def caller(self, kind):
        """Create a caller of this kind."""
        if kind == "API key":
            return Caller(Authorization=f"Bearer {self.secret}")
        if kind == "ID token":
            return Caller(Authorization=f"Bearer {self.token}")
        caller = Caller()
        if kind == "session":
            caller.client.force_login(self.ann)
        return caller

    def each(self):
        for kind in CALLERS:
            yield kind, self.caller(kind)

    def person(self, kind):
        """The account of a caller of this kind, after its first request."""
        if kind == "guest":
            return User.objects.filter(guest_until__isnull=False).latest("pk")
        return self.ann if kind != "ID token" else ExternalIdentity.objects.get().user

    def test_every_row_of_the_table_has_a_test_here(self):
        section = DOCUMENT.read_text().partition("\n## Who may do what\n")[2].partition("\n## ")[0]
        header, _, *rows = [line for line in section.splitlines() if line.startswith("|")]
        self.assertEqual([cell.strip() for cell in header.split("|")[2:-1]], list(CALLERS))
        tested = {
            method.row for name in dir(self) if hasattr(method := getattr(type(self), name, None), "row")
        }
        self.assertEqual({row.split("|")[1].strip() for row in rows}, tested)

    def test_proof(self):
        guest = self.caller("guest")
        self.assertIn("sessionid", guest("GET", "/v1/models").cookies)
        self.assertNotIn("sessionid", guest("GET", "/v1/models").cookies)
        self.assertEqual(self.caller("session")("GET", "/v1/models").status_code, 200)
        for secret in (self.secret, self.token):
            for headers in (
                {"Authorization": f"Bearer {secret}"},
                {"api-key": secret},
                {"X-Api-Key": secret},
            ):
                answer = Caller(**headers)("GET", "/v1/models")
                self.assertEqual((answer.status_code, len(answer.cookies)), (200, 0), headers)
                wrong = {name: f"{value}x" for name, value in headers.items()}
                self.assertEqual(Caller(**wrong)("GET", "/v1/models").status_code, 401, wrong)

    test_proof.row = "proof"

    def test_available(self):
        def statuses():
            return [self.caller(kind)("GET", "/v1/models").status_code for kind in CALLERS]

        self.assertEqual(statuses(), [200, 200, 200, 200])
        with override_settings(LOGIN_REQUIRED=True):
            self.assertEqual(statuses(), [401, 200, 200, 200])
        with override_settings(OIDC_ISSUER=""):
            self.assertEqual(statuses(), [200, 200, 200, 401])

    test_available.row = "available"

    def test_acts_as(self):
        people = User.objects.count()
        for kind, caller in self.each():
            answers = [caller.ask().json()["session_state"] for _ in range(2)]
            owners = set(Conversation.objects.filter(pk__in=answers).values_list("owner_id", flat=True))
            self.assertEqual(owners, {self.person(kind).pk})
        self.assertEqual(User.objects.count(), people + 2)  # a guest, and the person of the first token

    test_acts_as.row = "acts as"

    def test_reads(self):
        self.caller("ID token")("GET", "/v1/models")
        self.document("for-the-token.md", users=(self.person("ID token"),))
        ann = {"open.md", "internal.md", "granted.md"}
        readable = {"guest": {"open.md"}, "session": ann, "API key": ann}
        readable["ID token"] = {"open.md", "internal.md", "for-the-token.md"}
        for kind, caller in self.each():
            points = caller.ask(context={"overrides": {"top": 10}}).json()["context"]["data_points"]
            self.assertEqual({text.partition(": ")[0] for text in points["text"]}, readable[kind], kind)

    test_reads.row = "reads"

    def test_asks_resumes_and_stops(self):
        for kind, caller in self.each():
            answer = caller.ask()
            self.assertIn("five days", answer.json()["message"]["content"])
            run = f"/chat/runs/{answer['Chat-Run']}"
            self.assertEqual(caller("GET", f"{run}/events").status_code, 200, kind)
            self.assertEqual(caller("POST", f"{run}/stop", **OWN_ORIGIN).status_code, 204, kind)
            stranger = self.caller("guest")
            stranger.ask()
            self.assertEqual(stranger("GET", f"{run}/events").status_code, 404)
            self.assertEqual(stranger("POST", f"{run}/stop", **OWN_ORIGIN).status_code, 404)

    test_asks_resumes_and_stops.row = "asks questions, resumes and stops answers"

    def test_conversations(self):
        for kind, caller in self.each():
            mine = caller.ask().json()["session_state"]
            others = Conversation.objects.exclude(owner=self.person(kind)).values_list("pk", flat=True)
            listed = [row["id"] for row in caller("GET", "/chat-history").json()]
            self.assertIn(mine, listed)
            self.assertFalse(set(listed) & {str(each) for each in others})
            renamed = caller("PATCH", f"/chat-history/{mine}", {"title": "Leave"}, **OWN_ORIGIN)
            self.assertEqual(renamed.json()["title"], "Leave")
        key = {row["id"] for row in self.caller("API key")("GET", "/chat-history").json()}
        self.assertEqual(key, {row["id"] for row in self.caller("session")("GET", "/chat-history").json()})

    test_conversations.row = "conversations in `/chat-history`"

    def test_responses(self):
        for _, caller in self.each():
            body = {"model": "any", "input": ASKED["messages"][0]["content"]}
            first = caller("POST", "/v1/responses", body, **OWN_ORIGIN).json()["id"]
            second = {"model": "any", "input": "Why?", "previous_response_id": first}
            self.assertEqual(caller("POST", "/v1/responses", second, **OWN_ORIGIN).status_code, 200)
            self.assertEqual(caller("GET", f"/v1/responses/{first}").status_code, 200)
            stranger = self.caller("guest")
            stranger("GET", "/v1/models")
            self.assertEqual(stranger("GET", f"/v1/responses/{first}").status_code, 404)
            self.assertEqual(stranger("POST", "/v1/responses", second, **OWN_ORIGIN).status_code, 404)

    test_responses.row = "`/v1/responses`, `previous_response_id`"

    def test_embeddings(self):
        body = {"model": "any", "input": "leave"}
        statuses = {}
        for kind, caller in self.each():
            caller("GET", "/v1/models")  # a guest exists before the request
            statuses[kind] = caller("POST", "/v1/embeddings", body, **OWN_ORIGIN).status_code
        self.assertEqual(statuses, {"guest": 401, "session": 200, "API key": 200, "ID token": 200})
        self.assertEqual(self.caller("guest")("POST", "/v1/embeddings", body).status_code, 401)

    test_embeddings.row = "`/v1/embeddings`"

    def test_prompt_template(self):
        context = {"overrides": {"prompt_template": ">>> Be brief."}}
        permission = Permission.objects.get(codename="set_prompt")
        for kind, caller in self.each():
            caller("GET", "/v1/models")
            person = self.person(kind)
            person.user_permissions.remove(permission)
            self.assertEqual(caller.ask(context=context).status_code, 403, kind)
            if kind != "guest":
                person.user_permissions.add(permission)
                self.assertEqual(caller.ask(context=context).status_code, 200, kind)

    test_prompt_template.row = "`prompt_template`"

    def test_pages_settings_and_uploads(self):
        pages = ("/", "/settings/", "/settings/keys/", "/documents/add/")
        opened = {}
        for kind, caller in self.each():
            opened[kind] = [caller("GET", page).status_code for page in pages]
        self.assertEqual(opened["guest"], [200, 302, 302, 302])
        self.assertEqual(opened["session"], [200, 200, 200, 200])
        for kind in ("API key", "ID token"):
            self.assertEqual(opened[kind][1:], [302, 302, 302])
            with override_settings(LOGIN_REQUIRED=True):
                self.assertEqual(self.caller(kind)("GET", "/").status_code, 302)

    test_pages_settings_and_uploads.row = "pages of the portal, settings, uploads"

    def test_same_origin_or_token(self):
        for kind, caller in self.each():
            caller("GET", "/chat-history")
            plain = caller("POST", "/chat", ASKED).status_code
            self.assertEqual(plain, 403 if kind in {"guest", "session"} else 200)
            foreign = caller("POST", "/chat", ASKED, **{"Sec-Fetch-Site": "cross-site"}).status_code
            self.assertEqual(foreign, plain)
            self.assertEqual(caller.ask().status_code, 200)

    test_same_origin_or_token.row = "needs the same origin or a CSRF token"

    @override_settings(CORS_ORIGINS=[ORIGIN])
    def test_from_another_origin(self):
        elsewhere = {"Origin": ORIGIN, "Sec-Fetch-Site": "cross-site"}
        for kind in CALLERS:
            for _ in range(2):
                # Browsers send no cookies there, so a session has no effect, as for a guest.
                nobody = kind in {"guest", "session"}
                asking, listing = (Caller() if nobody else self.caller(kind) for _ in range(2))
                self.assertEqual(asking("POST", "/chat", ASKED, **elsewhere).status_code, 200, kind)
                listed = listing("GET", "/chat-history", **elsewhere).json()
                self.assertEqual(bool(listed), not nobody, kind)
        self.assertEqual(User.objects.filter(guest_until__isnull=False).count(), 8)

    test_from_another_origin.row = "from another origin (`CHATSITE_CORS_ORIGINS`)"

    def test_ends(self):
        guest, session = self.caller("guest"), self.caller("session")
        guest("GET", "/v1/models")
        User.objects.filter(guest_until__isnull=False).update(guest_until="2020-01-01T00:00Z")
        self.assertEqual(guest("GET", "/v1/models").status_code, 401)
        session.client.logout()
        with override_settings(LOGIN_REQUIRED=True):
            self.assertEqual(session("GET", "/v1/models").status_code, 401)
        ApiKey.objects.revoke()
        self.assertEqual(self.caller("API key")("GET", "/v1/models").status_code, 401)
        now = int(time.time())
        self.token = self.provider.token(iat=now - 600, exp=now - 60)
        self.assertEqual(self.caller("ID token")("GET", "/v1/models").status_code, 401)

    test_ends.row = "ends"
