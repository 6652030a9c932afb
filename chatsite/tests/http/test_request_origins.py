"""Requests with a session's cookie are accepted only from the site's own pages, or with the CSRF token."""

import contextlib
import itertools
import json
import logging
import math
import random
import tempfile

import pytest
from asgiref.sync import AsyncSingleThreadContext, sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.db import connection
from django.test import Client, TransactionTestCase, override_settings

from chatsite.accounts.models import User
from chatsite.asgi import application
from chatsite.db.threads import reading_everything
from chatsite.tests.plugins.seed import sample
from chatsite.tests.routes import address, admin_addresses, routes, socket_address, socket_routes
from chatsite.tests.world import World
from history.models import Conversation
from ingestion.tests.media import ReadingClient

LISTED = "https://app.example.org"
JSON = {"content_type": "application/json"}
GROUP = 15  # paths between two checks of all tables
# Headers of requests from the site's own pages; the host of Django's test client is "testserver".
OWN = {
    "a browser that sends Sec-Fetch-Site": {"Sec-Fetch-Site": "same-origin", "Origin": "http://testserver"},
    "Sec-Fetch-Site alone": {"Sec-Fetch-Site": "same-origin"},
    "a browser over plain HTTP": {"Origin": "http://testserver"},
    "behind a proxy that ends TLS": {"Origin": "https://testserver"},
    "a listed origin, in a browser over plain HTTP": {"Origin": LISTED},
}
# Headers of requests from pages of other sites, and from programs.
FOREIGN = {
    "a plain form": {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Dest": "document",
        "Origin": "https://evil.example",
    },
    "a plain form over plain HTTP": {"Origin": "https://evil.example"},
    "fetch with no-cors": {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "no-cors",
        "Sec-Fetch-Dest": "empty",
        "Origin": "https://evil.example",
    },
    "another port of the host": {"Sec-Fetch-Site": "same-site", "Origin": "http://testserver:9000"},
    "another port of the host over plain HTTP": {"Origin": "http://testserver:9000"},
    "a sub-domain": {"Sec-Fetch-Site": "same-site", "Origin": "http://files.testserver"},
    "a sub-domain over plain HTTP": {"Origin": "http://files.testserver"},
    "a sandboxed frame": {"Sec-Fetch-Site": "cross-site", "Origin": "null"},
    "a sandboxed frame over plain HTTP": {"Origin": "null"},
    "a listed origin whose browser says cross-site": {"Sec-Fetch-Site": "cross-site", "Origin": LISTED},
    "a typed address or a resubmitted form": {"Sec-Fetch-Site": "none"},
    "an unknown word": {"Sec-Fetch-Site": "same-origin, cross-site", "Origin": "http://testserver"},
    "an empty word": {"Sec-Fetch-Site": "", "Origin": "http://testserver"},
    "a host that begins like the site's": {"Origin": "http://testserver.evil.example"},
    "two origins": {"Origin": "http://testserver, https://evil.example"},
    "no header at all": {},
}
# Tables that also change when something is only viewed: the last use of sessions, the audit log.
LOOKED = {"django_session", "accounts_auditentry"}
# 400 and 415: the body, in which a token is searched for, has the wrong format for the address.
REFUSED = {400, 401, 403, 404, 405, 415}
# Bodies of the attacks below, which would all be valid.
FORM = {
    "content": "planted",
    "text": "planted",
    "title": "planted",
    "username": "evil",
    "new_password1": "planted-1234",
    "new_password2": "planted-1234",
    "name": "planted",
    "who": "everyone",
    "confirmed": "yes",
    "action": "delete_selected",
    "post": "yes",
}
QUESTION = {"messages": [{"role": "user", "content": "planted"}], "title": "planted", "mode": "standard"}


def client_of(user):
    """A browser with the session of `user` and its CSRF cookie. It sends a token only if a test does."""
    client = ReadingClient(enforce_csrf_checks=True, raise_request_exception=False)
    client.force_login(user)
    return client


class QuietCase(TransactionTestCase):
    def setUp(self):
        self.enterContext(AsyncSingleThreadContext())  # one thread for all requests
        logging.disable(logging.WARNING)
        self.addCleanup(logging.disable, logging.NOTSET)


@pytest.mark.slow
@override_settings(CORS_ORIGINS=[LISTED])
class OneQuestionAfterAnother(QuietCase):
    def setUp(self):
        super().setUp()
        self.user = User.objects.create_user("ann")
        self.client = client_of(self.user)
        self.client.get("/")  # sets the cookie with the CSRF token

    def create(self, **headers):
        return self.client.post("/chat-history", '{"title": "Leave"}', headers=headers, **JSON)

    def test_the_sites_own_pages_need_no_token(self):
        for name, headers in OWN.items():
            with self.subTest(name):
                self.assertEqual(self.create(**headers).status_code, 201)

    def test_other_pages_need_a_token(self):
        for name, headers in FOREIGN.items():
            with self.subTest(name):
                answer = self.create(**headers)
                self.assertEqual((answer.status_code, answer.json()["error"]["code"]), (403, "forbidden"))
        self.assertFalse(Conversation.objects.exists())

    def test_requests_with_the_token_work_as_before(self):
        token = {"X-CSRFToken": self.client.cookies["csrftoken"].value}
        for headers in ({}, {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "same-site"}):
            self.assertEqual(self.create(**headers, **token).status_code, 201)

    @override_settings(HTTPS=True)
    def test_a_page_without_tls_is_foreign_to_a_site_with_tls(self):
        answer = self.client.post(
            "/chat-history", "{}", headers={"Origin": "http://testserver"}, secure=True, **JSON
        )
        self.assertEqual(answer.status_code, 403)
        answer = self.client.post(
            "/chat-history", "{}", headers={"Origin": "https://testserver"}, secure=True, **JSON
        )
        self.assertEqual(answer.status_code, 201)

    def test_every_published_url_accepts_questions_without_a_token_from_own_pages(self):
        for path in (
            "/chat", "/chat/", "/ask", "/api/chat", "/api/chat/batch", "/api/multi-agent-chat",
            "/api/minimal/chat", "/v1/chat/completions",
        ):  # fmt: skip
            with self.subTest(path):
                body = json.dumps({"messages": QUESTION["messages"]})
                answer = self.client.post(path, body, headers={"Sec-Fetch-Site": "same-origin"}, **JSON)
                self.assertEqual(answer.status_code, 200, answer.content)
                self.assertEqual(self.client.post(path, body, **JSON).status_code, 403)

    def test_the_portals_forms_keep_their_token(self):
        for name, headers in (OWN | FOREIGN).items():
            with self.subTest(name):
                answer = self.client.post("/", {"content": "planted"}, headers=headers)
                self.assertEqual(answer.status_code, 403)


@pytest.mark.slow
@override_settings(CORS_ORIGINS=[LISTED], PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"])
class NothingIsChangedFromElsewhere(QuietCase):
    """Every address and every unsafe method, with the cookies of a person who may use it."""

    def setUp(self):
        super().setUp()
        files = tempfile.TemporaryDirectory()
        self.addCleanup(files.cleanup)
        overridden = override_settings(MEDIA_ROOT=files.name)
        overridden.enable()
        self.addCleanup(overridden.disable)
        self.world = World()
        self.clients = {role: client_of(self.world.people[role]) for role in ("owner", "staff")}
        for client in self.clients.values():
            client.get("/")

    def addresses(self):
        """(path, whose cookies, how many of FOREIGN to try) of every route."""
        for name, _ in routes():
            if not name.startswith("admin:"):
                yield address(name, self.world.arguments), "owner", len(FOREIGN)
        for _, path in admin_addresses():
            yield path, "staff", 2

    @contextlib.contextmanager
    def unchanged(self, wrong, leave_out=frozenset()):
        """Yield a function that records a tried path, and add changed tables to `wrong`.

        Checking all tables costs more than the requests to one path, so it is done once for GROUP paths.
        """
        before, paths = contents(leave_out), []

        def look(path=None):
            nonlocal before
            paths.extend([path] if path else [])
            if len(paths) == GROUP or (paths and path is None):
                if (after := contents(leave_out)) != before:
                    changed = sorted(name for name in after if after[name] != before.get(name))
                    wrong.append(f"one of {paths} changed {changed}")
                before = after
                paths.clear()

        yield look
        look()

    def test_no_request_of_a_foreign_page_with_cookies_changes_anything(self):
        wrong, tried = [], 0
        with self.unchanged(wrong) as look:
            for path, role, ways in sample(self.addresses(), one_in=2):
                for way, (method, kind, body) in chosen(list(FOREIGN)[:ways]):
                    headers = FOREIGN[way]
                    if headers.get("Sec-Fetch-Mode") != "navigate":
                        # A short refusal: rendering the portal's page costs ten times as much as the check.
                        headers = headers | {"Accept": "application/json"}
                    answer = self.clients[role].generic(method, path, body, kind, headers=headers)
                    tried += 1
                    if answer.status_code not in REFUSED:
                        wrong.append(f"{method} {path} by {way}: {answer.status_code}")
                    if answer.cookies.get("sessionid"):
                        wrong.append(f"{method} {path} by {way} sets a session")
                look(path)
        self.assertEqual(wrong, [])
        self.assertGreater(tried, 1_000)

    def test_no_page_opened_from_a_foreign_page_changes_anything(self):
        wrong = []
        with self.unchanged(wrong, leave_out=LOOKED) as look:
            for path, role, _ in sample(self.addresses(), one_in=2):
                for headers in random.sample(list(FOREIGN.values()), 2):
                    self.clients[role].get(path, headers=headers)
                look(path)
        self.assertEqual(wrong, [])

    def test_the_same_requests_change_things_if_they_come_from_the_site(self):
        """Otherwise the tests above could pass because none of their requests is valid."""
        changed, arguments = set(), self.world.arguments
        for name in ("history:conversations", "history:conversation", "chat-api:ask", "chat-api:chat-ui"):
            path = address(name, arguments)
            before = contents()
            for method, kind, body in attempts():
                own = {"Sec-Fetch-Site": "same-origin"}
                self.clients["owner"].generic(method, path, body, kind, headers=own)
            if contents() != before:
                changed.add(name)
        token = self.clients["owner"].cookies["csrftoken"].value
        for name in ("accounts:keys", "accounts:revoke-key"):
            path, before = address(name, arguments), contents()
            self.clients["owner"].post(path, FORM | {"csrfmiddlewaretoken": token})
            if contents() != before:
                changed.add(name)
        self.assertEqual(
            changed,
            {
                "history:conversations", "history:conversation", "chat-api:ask", "chat-api:chat-ui",
                "accounts:keys", "accounts:revoke-key",
            },
        )  # fmt: skip


def attempts():
    """(method, media type, body) of each attempt of a foreign page at one address."""
    form = "&".join(f"{name}={value}" for name, value in FORM.items())
    text = json.dumps(QUESTION)
    yield "POST", "application/x-www-form-urlencoded", form
    yield "POST", "application/json", text
    yield "POST", "text/plain", text
    yield "PUT", "application/json", text
    yield "PATCH", "application/json", json.dumps({"title": "planted"})
    yield "DELETE", "application/json", ""


def chosen(ways):
    """Random pairs of a way and an attempt, with each way and each attempt at least once."""
    tries = list(attempts())
    number = max(len(ways), len(tries))
    tries *= math.ceil(number / len(tries))
    random.shuffle(tries)
    return list(zip(itertools.cycle(ways), tries[:number], strict=False))


def contents(leave_out=frozenset()):
    """{table: a digest of all its rows}"""
    with reading_everything(), connection.cursor() as cursor:
        tables = sorted(set(connection.introspection.table_names()) - {"django_migrations", *leave_out})
        digest = "md5(coalesce(string_agg(row::text, '|' ORDER BY row::text), ''))"
        union = " UNION ALL ".join(f"SELECT '{name}', {digest} FROM \"{name}\" AS row" for name in tables)
        cursor.execute(union)
        return dict(cursor.fetchall())


class Sockets(TransactionTestCase):
    def setUp(self):
        self.world = World()
        self.client = Client()
        self.client.force_login(self.world.people["owner"])

    async def test_foreign_pages_cannot_open_a_socket_with_the_cookies_of_their_visitor(self):
        arguments = await sync_to_async(lambda: self.world.arguments)()
        for pattern in socket_routes():
            path = socket_address(pattern, arguments)
            self.assertEqual(await self.knock(path, {"Origin": "http://testserver"}), "websocket.accept")
            for name, headers in FOREIGN.items():
                if headers.get("Origin") == "http://testserver":
                    continue
                with self.subTest(name):
                    self.assertEqual(await self.knock(path, headers), "websocket.close")
            # Allowed at the API, but not at the portal's sockets.
            with override_settings(CORS_ORIGINS=[LISTED]):
                self.assertEqual(await self.knock(path, {"Origin": LISTED}), "websocket.close")

    async def knock(self, path, headers):
        """The first message of a socket."""
        cookies = self.client.cookies.output(header="", sep=";").strip()
        # The socket's hosts are read when the application is loaded, before the test client adds its own.
        values = {name: value.replace("testserver", "localhost") for name, value in headers.items()}
        pairs = [(name.lower().encode(), value.encode()) for name, value in values.items()]
        scope = {
            "type": "websocket",
            "path": path,
            "query_string": b"",
            "subprotocols": [],
            "headers": [(b"host", b"localhost"), (b"cookie", cookies.encode()), *pairs],
        }
        socket = ApplicationCommunicator(application, scope)
        await socket.send_input({"type": "websocket.connect"})
        answer = await socket.receive_output(timeout=5)
        await socket.send_input({"type": "websocket.disconnect", "code": 1000})
        await socket.wait(timeout=5)
        return answer["type"]
