"""Refused and failed requests get a page or JSON, never a traceback."""

from unittest import mock

import psycopg
from django.contrib.sessions.models import Session
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import OperationalError
from django.http import HttpResponse
from django.test import AsyncClient, Client, TestCase, override_settings
from django.urls import include, path
from procrastinate.exceptions import ConnectorException

from chatsite import urls
from chatsite.http import error_pages
from ingestion.tests.factories import make_user

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


def fail(request):
    raise RuntimeError("a secret detail")


def starve(request):
    raise OperationalError("the address of a secret server")


def starve_queue(request):
    raise ConnectorException from psycopg.OperationalError("the address of a secret server")


def forbid(request):
    raise PermissionDenied("a secret detail")


def suspect(request):
    raise SuspiciousOperation("a secret detail")


def end_session(request):
    request.session["changed"] = True
    Session.objects.all().delete()
    return HttpResponse()


urlpatterns = [
    path("end-session", end_session),
    path("fail", fail),
    path("starve", starve),
    path("starve-queue", starve_queue),
    path("chat/starve", starve),
    path("api/starve", starve),
    path("v1/starve", starve),
    path("forbid", forbid),
    path("suspect", suspect),
    path("api/fail", fail),
    path("api/chat/fail", fail),
    path("", include(urls)),
]
handler400, handler403 = error_pages.bad_request, error_pages.permission_denied
handler404, handler500 = error_pages.not_found, error_pages.server_error


@override_settings(ROOT_URLCONF="chatsite.tests.http.test_errors")
class Errors(TestCase):
    client_class = Client

    def setUp(self):
        self.client = Client(raise_request_exception=False, enforce_csrf_checks=True)

    def get(self, address, accept):
        with self.assertLogs("django"):
            return self.client.get(address, headers={"Accept": accept})

    def test_a_browser_gets_a_page(self):
        for address, status in (("/fail", 500), ("/forbid", 403), ("/suspect", 400), ("/nothing-here", 404)):
            answer = self.get(address, BROWSER)
            self.assertEqual(answer.status_code, status)
            self.assertTemplateUsed(answer, f"{status}.html")
            self.assertNotIn("secret", answer.text)
            self.assertNotIn("Traceback", answer.text)
            self.assertIn("X-Request-ID", answer)

    def test_a_signed_in_person_gets_the_error_page_within_the_portal(self):
        self.client.force_login(make_user("asker"))
        for address, status in (("/forbid", 403), ("/nothing-here", 404)):
            answer = self.get(address, BROWSER)
            self.assertEqual(answer.status_code, status)
            self.assertContains(answer, 'id="side"', status_code=status)
            self.assertContains(answer, error_pages.ADVICE[status], status_code=status)
            self.assertIn("no-store", answer["Cache-Control"])
            self.assertNotIn("secret", answer.text)
        self.assertNotIn('id="side"', self.get("/fail", BROWSER).text)
        with self.assertLogs("django"):
            image = self.client.get("/nothing-here", headers={"Accept": BROWSER, "Sec-Fetch-Dest": "image"})
        self.assertNotIn('id="side"', image.text)

    def test_a_session_that_ends_during_the_request_is_named_as_the_reason(self):
        self.client.force_login(make_user("asker"))
        answer = self.get("/end-session", BROWSER)
        self.assertContains(answer, error_pages.SESSION_ENDED, status_code=403)

    def test_an_error_page_that_fails_within_the_portal_is_shown_without_it(self):
        self.client.force_login(make_user("asker"))
        broken = mock.patch("chatsite.context_processors.Sidebar", side_effect=OperationalError("a secret"))
        with broken, self.assertLogs("chatsite.http.error_pages", "ERROR"):
            answer = self.get("/nothing-here", BROWSER)
        self.assertEqual(answer.status_code, 404)
        self.assertTemplateUsed(answer, "404.html")
        self.assertNotIn("secret", answer.text)

    def test_a_program_gets_json(self):
        for address, status in (("/fail", 500), ("/forbid", 403), ("/suspect", 400), ("/nothing-here", 404)):
            answer = self.get(address, "application/json")
            self.assertEqual(answer.status_code, status)
            self.assertEqual(list(answer.json()), ["error"])
            self.assertNotIn("secret", answer.text)

    def test_urls_for_programs_answer_in_json_unless_html_is_requested(self):
        self.assertEqual(self.get("/chat/nothing", "*/*").json(), {"error": error_pages.WORDS[404]})
        self.assertIn("<h1>", self.get("/api/nothing", BROWSER).text)

    def test_without_the_database_the_page_asks_to_retry(self):
        for address, accept in (
            ("/starve", BROWSER),
            ("/starve-queue", BROWSER),
            ("/chat/starve", "*/*"),
            ("/api/starve", "*/*"),
            ("/v1/starve", "*/*"),
        ):
            answer = self.get(address, accept)
            self.assertEqual((answer.status_code, answer["Retry-After"]), (503, "2"))
            self.assertIn(error_pages.WORDS[503], answer.text)
            self.assertNotIn("secret", answer.text)

    def test_the_page_without_the_database_has_a_retry_link(self):
        self.assertIn('<a href="">Try again</a>', self.get("/starve", BROWSER).text)
        self.assertNotIn("Try again</a>", self.get("/fail", BROWSER).text)

    def test_a_foreign_host_name_is_refused_without_a_log_entry(self):
        with self.assertNoLogs("django.security", "ERROR"):
            answer = self.client.get("/", headers={"Host": "elsewhere.example"})
        self.assertEqual(answer.status_code, 400)

    async def test_also_on_the_event_loop(self):
        client = AsyncClient(raise_request_exception=False)
        with self.assertLogs("django"):
            answer = await client.get("/chat/starve")
        self.assertEqual(answer.status_code, 503)

    def test_each_protocol_has_its_own_form(self):
        self.assertEqual(
            self.get("/api/chat/fail", "*/*").json(),
            {"error": {"message": error_pages.WORDS[500], "code": "internal"}},
        )
        for address, status, title in (
            ("/api/fail", 500, "Internal Server Error"),
            ("/api/nothing", 404, "Not Found"),
        ):
            answer = self.get(address, "*/*")
            told = {"type": "about:blank", "title": title, "status": status}
            self.assertEqual(answer.json(), told | {"detail": error_pages.WORDS[status]})
            self.assertEqual(answer["Content-Type"], "application/problem+json")
        told = self.get("/v1/nothing", "*/*").json()["error"]
        self.assertEqual((told["message"], told["type"]), (error_pages.WORDS[404], "not_found_error"))
        self.assertEqual(set(told), {"message", "type", "param", "code"})

    def test_a_client_of_openai_with_a_wrong_base_url_is_sent_the_right_one(self):
        right = "http://testserver/v1"
        for address in (
            "/chat/completions", "/completions", "/models", "/models/", "/models/any", "/responses",
            "/responses/resp_1/cancel", "/embeddings", "//models", "/v1/v1/models", "/api/v1/models",
            "/api/chat/completions", "/openai/v1/responses", "/v1/chat/completions/chat/completions",
            "/openai/deployments/any/chat/completions",
        ):  # fmt: skip
            for method in (self.client.get, self.client.post):
                with self.assertLogs("django"):
                    answer = method("/", headers={"Accept": "application/json"}, PATH_INFO=address)
                self.assertEqual(answer.status_code, 404)
                error = answer.json()["error"]
                words = f"There is nothing at {address}. The base URL of this site’s API is {right}"
                self.assertEqual((error["message"], error["code"]), (words, "wrong_base_url"))
                self.assertEqual((error["type"], error["param"]), ("not_found_error", None))
        self.assertIn(right, self.get("/models", "*/*").text)
        self.assertIn("<h1>", self.get("/models", BROWSER).text)
        for address in ("/v1/responses/1", "/v1/chat/completions/1", "/v1/nothing", "/modelsof"):
            self.assertNotIn(right, self.get(address, "application/json").text)

    def test_a_form_without_its_token_is_explained(self):
        with self.assertLogs("django"):
            answer = self.client.post("/accounts/sign-in/", {"username": "x"}, headers={"Accept": BROWSER})
        self.assertContains(answer, "Go back, reload the page", status_code=403)
        with self.assertLogs("django"):
            answer = self.client.post("/accounts/sign-in/", headers={"Accept": "application/json"})
        self.assertEqual((answer.status_code, list(answer.json())), (403, ["error"]))

    def test_a_fault_in_a_context_processor_does_not_hide_the_page(self):
        with mock.patch(
            "chatsite.context_processors.Preferences.of", side_effect=RuntimeError("a secret detail")
        ):
            answer = self.get("/nothing-here", BROWSER)
        self.assertEqual(answer.status_code, 404)
