"""Other origins: none is allowed by default, and only those that the operator lists."""

from unittest.mock import patch

from asgiref.testing import ApplicationCommunicator
from django.test import SimpleTestCase, TransactionTestCase, override_settings

from chatsite.asgi import application
from chatsite.checks import check_identity_settings
from chatsite.http.address_limit import Queues
from chatsite.tests.limits import HANG_SECONDS

ORIGIN = "https://app.example.org"


async def exchange(method, path, body=b"", **headers):
    """(status, {header: value}) of a request through the site's whole ASGI stack."""
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b""}
    scope |= {"headers": [(b"host", b"localhost"), *pairs], "http_version": "1.1", "scheme": "http"}
    scope |= {"server": ("localhost", 80), "client": ("127.0.0.1", 1)}
    caller = ApplicationCommunicator(application, scope)
    await caller.send_input({"type": "http.request", "body": body, "more_body": False})
    start = await caller.receive_output(timeout=HANG_SECONDS)
    await caller.send_input({"type": "http.disconnect"})
    await caller.wait(timeout=HANG_SECONDS)
    return start["status"], {name.decode().lower(): value.decode() for name, value in start["headers"]}


def opened(headers):
    return {name: value for name, value in headers.items() if name.startswith("access-control")}


PREFLIGHT = {"access_control_request_method": "POST", "access_control_request_headers": "authorization, x-a"}


class ByDefault(TransactionTestCase):
    async def test_nothing_is_open(self):
        for method in ("OPTIONS", "GET", "POST"):
            _, headers = await exchange(method, "/chat", origin=ORIGIN, **PREFLIGHT)
            self.assertEqual(opened(headers), {})


@override_settings(CORS_ORIGINS=[ORIGIN])
class ListedOrigins(TransactionTestCase):
    async def test_a_preflight_is_answered(self):
        for path in ("/chat", "/ask/stream", "/api/chat", "/v1/chat/completions", "/chat-history"):
            status, headers = await exchange("OPTIONS", path, origin=ORIGIN, **PREFLIGHT)
            self.assertEqual(status, 204)
            self.assertEqual(headers["access-control-allow-origin"], ORIGIN)
            self.assertEqual(headers["access-control-allow-headers"], "authorization, x-a")
            self.assertIn("POST", headers["access-control-allow-methods"])
            self.assertEqual(headers["vary"], "Origin")

    async def test_a_refusal_before_django_can_be_read(self):
        """A page of another origin must see why it was refused, and when to try again."""
        with patch.object(Queues, "acquire", return_value=False):
            status, headers = await exchange("POST", "/chat", b"{}", origin=ORIGIN, content_length="2")
        self.assertEqual(status, 503)
        self.assertEqual(headers["access-control-allow-origin"], ORIGIN)
        self.assertIn("retry-after", headers)

    async def test_answers_and_refusals_can_be_read_with_their_headers(self):
        status, headers = await exchange("POST", "/chat", b"{}", origin=ORIGIN, content_length="2")
        self.assertEqual(status, 401)
        self.assertEqual(headers["access-control-allow-origin"], ORIGIN)
        self.assertEqual(
            headers["access-control-expose-headers"],
            "Chat-Message, Chat-Run, Content-Disposition, Content-Range, ETag, Link, Location, RateLimit,"
            " RateLimit-Policy, Retry-After, WWW-Authenticate, X-Request-ID",
        )
        self.assertIn("Origin", headers["vary"])
        status, headers = await exchange("POST", "/chat", origin=ORIGIN, content_length="999999999")
        self.assertEqual((status, headers["access-control-allow-origin"]), (413, ORIGIN))

    async def test_other_origins_are_not_allowed(self):
        for origin in (
            "https://evil.example",
            "http://app.example.org",
            "https://app.example.org.evil.example",
            "https://app.example.org:444",
            "null",
            "*",
        ):
            for method in ("OPTIONS", "POST"):
                _, headers = await exchange(method, "/chat", origin=origin, **PREFLIGHT)
                self.assertEqual(opened(headers), {}, origin)
                self.assertIn("Origin", headers["vary"])

    async def test_pages_and_the_admin_are_never_allowed_for_other_origins(self):
        for path in ("/", "/admin/", "/documents/", "/accounts/sign-in/", "/chatter", "/settings/keys/"):
            _, headers = await exchange("GET", path, origin=ORIGIN)
            self.assertEqual(opened(headers), {}, path)

    async def test_invalid_header_names_are_not_echoed(self):
        wanted = PREFLIGHT | {"access_control_request_headers": "a\r\nx: y"}
        _, headers = await exchange("OPTIONS", "/chat", origin=ORIGIN, **wanted)
        self.assertNotIn("access-control-allow-headers", headers)


class Checks(SimpleTestCase):
    def problems(self, **settings):
        with override_settings(**settings):
            return [problem.id for problem in check_identity_settings(None)]

    def test_origins_are_whole_and_exact(self):
        self.assertEqual(
            self.problems(CORS_ORIGINS=[ORIGIN, "http://localhost:3000", "http://[::1]:3000"]), []
        )
        for wrong in ("*", "https://*.example.org", "example.org", "https://a.org/", "https://A.org", "null"):
            self.assertEqual(self.problems(CORS_ORIGINS=[wrong]), ["chatsite.E014"], wrong)

    def test_a_provider_needs_its_client_and_safe_addresses(self):
        whole = {"OIDC_ISSUER": "https://id.example.org", "OIDC_AUDIENCE": "a"}
        self.assertEqual(self.problems(**whole), [])
        self.assertEqual(self.problems(**whole | {"OIDC_AUDIENCE": ""}), ["chatsite.E011"])
        self.assertEqual(self.problems(OIDC_AUDIENCE="a"), ["chatsite.E012"])
        self.assertEqual(self.problems(**whole | {"OIDC_ISSUER": "http://id.example.org"}), ["chatsite.E013"])
        self.assertEqual(self.problems(**whole | {"OIDC_JWKS_URL": "http://x.org"}), ["chatsite.E013"])
