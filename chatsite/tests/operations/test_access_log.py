"""The access log: who requested which kind of page, its status and duration, and no text of people."""

import json
import logging
from uuid import uuid4

from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.test import Client, SimpleTestCase, TransactionTestCase, override_settings

from chatsite.accounts.models import ApiKey, User
from chatsite.asgi import application
from chatsite.http.access_log import AccessLog
from chatsite.logs import JsonFormatter
from chatsite.tests.limits import HANG_SECONDS
from history.models import Conversation

KEYS = {
    "time",
    "level",
    "logger",
    "message",
    "request_id",
    "method",
    "route",
    "status",
    "ms",
    "user",
}
SECRET = "kündigung-von-anna"


def scope(method, path, query="", **headers):
    names = {name.replace("_", "-"): value for name, value in ({"host": "localhost"} | headers).items()}
    return {
        "type": "http" if method != "WEBSOCKET" else "websocket",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "subprotocols": [],
        "client": ("127.0.0.1", 1),
        "headers": [(name.encode(), value.encode()) for name, value in names.items()],
    }


@override_settings(ACCESS_LOG=True)
class Lines(TransactionTestCase):
    def setUp(self):
        self.person = User.objects.create_user("anna")
        self.client = Client()
        self.client.force_login(self.person)

    @property
    def cookie(self):
        return self.client.cookies.output(header="", sep=";").strip()

    async def ask(self, method, path, query="", body=b"", **headers):
        """The log lines of a request, as they are written."""
        with self.assertLogs("chatsite.access", "INFO") as logged:
            caller = ApplicationCommunicator(application, scope(method, path, query, **headers))
            await caller.send_input({"type": "http.request", "body": body})
            while (await caller.receive_output(HANG_SECONDS)).get("type") != "http.response.body":
                pass
            await caller.send_input({"type": "http.disconnect"})
            await caller.wait(HANG_SECONDS)
        return self.lines(logged)

    def lines(self, logged):
        return [json.loads(JsonFormatter().format(record)) for record in logged.records]

    async def test_a_page_is_logged_with_its_url_pattern_and_the_id_of_its_person(self):
        path = f"/c/{uuid4()}/"
        (line,) = await self.ask("GET", path, f"q={SECRET}", cookie=self.cookie, x_request_id="request-0001")
        self.assertEqual(set(line), KEYS)
        told = {name: line[name] for name in ("method", "status", "user", "request_id", "message", "logger")}
        self.assertEqual(
            told,
            {
                "method": "GET",
                "status": 404,
                "user": self.person.pk,
                "request_id": "request-0001",
                "message": "request",
                "logger": "chatsite.access",
            },
        )
        self.assertEqual(line["route"], "c/<uuid:conversation_id>/")
        self.assertGreater(line["ms"], 0)

    async def test_log_lines_contain_neither_text_nor_secrets(self):
        session = self.client.cookies[settings.SESSION_COOKIE_NAME].value
        for path in ("/", f"/{SECRET}", f"/static/{SECRET}", "/search/"):
            with self.subTest(path):
                (line,) = await self.ask(
                    "GET",
                    path,
                    f"q={SECRET}",
                    cookie=self.cookie,
                    referer=f"http://localhost/{SECRET}",
                    user_agent=SECRET,
                )
                self.assertEqual(set(line), KEYS)
                self.assertNotIn(SECRET, json.dumps(line, ensure_ascii=False))
                self.assertNotIn(session, json.dumps(line))

    async def test_a_key_is_logged_as_its_person_and_an_invalid_one_as_nobody(self):
        _, secret = await sync_to_async(ApiKey.objects.issue)(self.person, "a program")
        for presented, status, person in ((secret, 200, self.person.pk), ("chs_wrong", 401, None)):
            with self.subTest(status):
                (line,) = await self.ask("GET", "/v1/models", authorization=f"Bearer {presented}")
                self.assertEqual((line["status"], line["user"]), (status, person))
                self.assertNotIn(presented, json.dumps(line))

    async def test_a_page_of_the_admin_is_logged_with_its_person(self):
        await User.objects.filter(pk=self.person.pk).aupdate(is_staff=True, is_superuser=True)
        (line,) = await self.ask("GET", "/admin/accounts/user/", cookie=self.cookie)
        self.assertEqual((line["route"], line["user"]), ("admin/accounts/user/", self.person.pk))

    async def test_requests_refused_before_django_are_logged_too(self):
        (line,) = await self.ask(
            "POST", "/chat", content_length=str(settings.BODY_LIMIT + 1), x_request_id="request-0002"
        )
        self.assertEqual((line["status"], line["route"], line["user"]), (413, "", None))
        self.assertEqual(line["request_id"], "request-0002")

    async def socket(self, path):
        """The log lines of a socket that is closed as soon as it was accepted or refused."""
        with self.assertLogs("chatsite.access", "INFO") as logged:
            headers = {"origin": "http://localhost", "cookie": self.cookie}
            caller = ApplicationCommunicator(application, scope("WEBSOCKET", path, **headers))
            await caller.send_input({"type": "websocket.connect"})
            await caller.receive_output(HANG_SECONDS)
            await caller.send_input({"type": "websocket.disconnect", "code": 1000})
            await caller.wait(HANG_SECONDS)
        return self.lines(logged)

    async def test_a_socket_is_logged_once_when_it_closes(self):
        own = await Conversation.objects.acreate(owner=self.person, title=SECRET)
        for path, status in ((f"/ws/c/{own.pk}/", 101), (f"/ws/c/{uuid4()}/", 403)):
            with self.subTest(status):
                (line,) = await self.socket(path)
                self.assertEqual(
                    (line["method"], line["message"], line["status"], line["user"]),
                    ("WEBSOCKET", "socket", status, self.person.pk),
                )
                self.assertEqual(line["route"], "ws/c/<uuid:conversation_id>/")
                self.assertEqual(set(line), KEYS)
        (line,) = await self.socket(f"/ws/{SECRET}/")
        self.assertEqual((line["status"], line["route"]), (403, ""))

    async def test_the_access_log_is_off_by_default(self):
        with override_settings(ACCESS_LOG=False), self.assertNoLogs("chatsite.access", "INFO"):
            caller = ApplicationCommunicator(application, scope("GET", "/healthz"))
            await caller.send_input({"type": "http.request", "body": b""})
            await caller.receive_output(HANG_SECONDS)
            await caller.receive_output(HANG_SECONDS)
            await caller.wait(HANG_SECONDS)


@override_settings(ACCESS_LOG=True)
class Endings(SimpleTestCase):
    async def status(self, inner):
        with self.assertLogs("chatsite.access", "INFO") as logged:
            caller = ApplicationCommunicator(AccessLog(inner), scope("GET", "/"))
            try:
                await caller.wait(HANG_SECONDS)
            except RuntimeError:
                pass
        return logged.records[0].fields["status"]

    async def test_an_error_without_a_response_is_logged_as_500(self):
        async def fails(scope, receive, send):
            raise RuntimeError

        self.assertEqual(await self.status(fails), 500)

    async def test_a_disconnected_caller_is_logged_without_a_status(self):
        async def leaves(scope, receive, send):
            pass

        self.assertIsNone(await self.status(leaves))

    def test_the_level_of_the_other_logs_does_not_silence_it(self):
        self.assertEqual(settings.LOGGING["loggers"]["chatsite.access"]["level"], "INFO")
        self.assertEqual(logging.getLogger("chatsite.access").level, logging.INFO)
